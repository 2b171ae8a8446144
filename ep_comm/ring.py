"""Link a ring of ``ranks`` runs over: its slowest hop decides."""


def ring_link(ranks, scaleup_ranks):
    """``scaleup`` while the group fits one domain, else ``scaleout``."""
    return "scaleup" if ranks <= scaleup_ranks else "scaleout"

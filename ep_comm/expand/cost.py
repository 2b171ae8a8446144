"""Cost of expand."""

from ascendkit.cost import Cost


def cost(num_rows, num_out, row_bytes):
    """Every received row read once, every output row written once.

    Args:
        num_rows: received rows.
        num_out: output rows, gaps included.
        row_bytes: bytes of a row.
    """
    names = dict(rows=min(num_rows, num_out), out=num_out, bytes=row_bytes)
    return (
        Cost(names)
        .read("received rows", "rows*bytes")
        .read("index (int32)", "4*out")
        .write("output rows", "out*bytes")
        # A row that serves several experts is fetched once a copy unless a cache holds it.
        .read("gathered rows and index", "out*(bytes+4)", "l2", planned=True)
        .write("output rows", "out*bytes", "l2", planned=True)
    )

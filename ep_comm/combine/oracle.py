"""combine by a walk over tokens, in NumPy; every rounding to bf16 by integer arithmetic."""

import numpy as np


def oracle(per_rank):
    """Bits of combined_x, and the weights: choices of this token, in order, group by group."""
    options = per_rank[0][4]
    ranks, share = len(per_rank), options["num_experts"] // len(per_rank)
    near = options.get("scaleup_ranks", 0) or ranks
    where = _rows(per_rank, options)
    out = []
    for me, (y, idx, w, bias, _) in enumerate(per_rank):
        x = np.zeros((len(idx), y.shape[1]), np.float32)
        for t in range(len(idx)):
            terms = []
            for j, e in enumerate(idx[t]):
                row = where.get((me, t, j))
                if row is not None:
                    terms.append((j, e // share, per_rank[e // share][0][row]))
            if options.get("multiple_reduction", True):
                terms = _grouped(terms, lambda rank: rank)
                if near < ranks:
                    terms = _grouped(terms, lambda rank: rank // near)
            x[t] = _sum([b[t] for b in bias] + [v for _, _, v in terms])
        kept = np.where(idx >= 0, w, np.float32(0))
        out.append(((x.view(np.uint32) >> 16).astype(np.uint16), kept))
    return out


def _rows(per_rank, options):
    """Row of y on the expert's rank, for every (source, token, choice) that has one."""
    ranks, share = len(per_rank), options["num_experts"] // len(per_rank)
    align, found = options.get("expert_alignment", 1), {}
    for rank in range(ranks):
        groups, plain = [[] for _ in range(share)], 0
        for source, (_, idx, _, _, _) in enumerate(per_rank):
            for t in range(len(idx)):
                mine = [j for j, e in enumerate(idx[t]) if e >= 0 and e // share == rank]
                for j in mine:
                    groups[idx[t][j] - rank * share].append((source, t, j))
                if mine and not options.get("do_expand"):
                    found[source, t, mine[-1]] = plain
                plain += bool(mine)
        begin = 0
        for group in groups:
            for i, key in enumerate(group):
                if options.get("do_expand"):
                    found[key] = begin + i
            begin += -(-len(group) // align) * align
    return found


def _grouped(terms, key):
    """One term a group, at its last choice."""
    groups = {}
    for j, rank, value in terms:
        groups.setdefault(key(rank), []).append((j, rank, value))
    summed = [(g[-1][0], g[-1][1], _sum([v for _, _, v in g])) for g in groups.values()]
    return sorted(summed, key=lambda term: term[0])


def _sum(values):
    """float32 from +0.0, in order, rounded once to bf16 (held as float32)."""
    total = np.float32(0)
    for v in values:
        total = np.add(total, v, dtype=np.float32)
    bits = np.asarray(total, np.float32).reshape(-1).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32)

"""dispatch by a walk over ranks, tokens and choices, in NumPy."""

import numpy as np


def oracle(per_rank):
    """Append every token to the receivers of its choices, in order."""
    options = per_rank[0][3]
    ranks, experts = len(per_rank), options["num_experts"]
    most, align = options["num_max_tokens_per_rank"], options.get("expert_alignment", 1)
    share, near = experts // ranks, options.get("scaleup_ranks", 0) or ranks
    out = []
    for me in range(ranks):
        rows, weights, source, local = [], [], [], []
        per_near = np.zeros(near, np.int32)
        groups = [[] for _ in range(share)]
        for rank, (x, idx, w, _) in enumerate(per_rank):
            for t in range(len(x)):
                mine = [int(e) - me * share for e in idx[t]]
                mine = [e if 0 <= e < share else -1 for e in mine]
                if max(mine) < 0:
                    continue
                for j, e in enumerate(mine):
                    if e >= 0:
                        groups[e].append((len(rows), j))
                rows.append(x[t])
                weights.append(w[t])
                source.append(rank * most + t)
                local.append(mine)
                per_near[rank % near] += 1
        out.append(
            _arranged(per_rank[0], rows, weights, source, local, per_near, groups, align, options)
        )
    return out


def _arranged(first, rows, weights, source, local, per_near, groups, align, options):
    x, idx, w, _ = first
    k = idx.shape[1]
    expanded = np.full((len(rows), k), -1, np.int32)
    psum, begin, picked = [], 0, []
    for group in groups:
        padded = -(-len(group) // align) * align
        for i, (row, j) in enumerate(group):
            expanded[row, j] = begin + i
            picked.append((begin + i, row, j))
        psum.append(begin + len(group) if options.get("do_expand") else begin + padded)
        begin += padded
    plain_x = np.array(rows, x.dtype).reshape(len(rows), x.shape[1])
    plain_w = np.array(weights, w.dtype).reshape(len(rows), k)
    tail = (np.array(source, np.int32),)
    sums = (np.cumsum(per_near).astype(np.int32), np.array(psum, np.int32))
    if not options.get("do_expand"):
        expanded[:] = -1
        own = np.array(local, np.int64).reshape(len(rows), k)
        return (plain_x, plain_w, *tail, expanded, *sums, own)
    out_x = np.zeros((begin, x.shape[1]), x.dtype)
    out_w = np.zeros(begin, w.dtype)
    for place, row, j in picked:
        out_x[place], out_w[place] = plain_x[row], plain_w[row, j]
    return (out_x, out_w, *tail, expanded, *sums)

"""expand_to_fused_with_sf one place at a time, in NumPy."""

from tilekernels.expand_to_fused.oracle import oracle as expand


def oracle(x, x_sf, num_per_channels, token_topk_to_pos, pos_to_expert, col_major):
    """Two loops over places; the layout of scales is not the oracle's."""
    maps = (token_topk_to_pos, pos_to_expert)
    return expand(x, *maps), expand(x_sf, *maps)

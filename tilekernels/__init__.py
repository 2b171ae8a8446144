"""TileKernels: gate, quantisation, norm, RoPE, random numbers, mHC and Engram. One folder an op."""

"""Quantising cast, one scale per block of columns of a token."""

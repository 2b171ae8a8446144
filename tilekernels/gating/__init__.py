"""What the gates share: scores of experts, the order of sums, where a token's experts go."""

SCORING = ("sqrtsoftplus", "sigmoid", "softmax")
"""Scoring functions, by upstream's names."""
PRIME = 23333
"""Copies of an expert take turns: copy ``(ep_rank + token * PRIME) % count``."""
SLOTS = 32
"""Most experts of a token, shared ones included; and terms of the tree that adds their weights."""
EPSILON = 1e-20
"""Added to the sum of a token's scores, so that a row of zeros gives zeros."""

"""What every test, check and bench shares: one set of comparers, one set of input generators.

Importing this package imports no torch; the functions do, when called.
"""

from ascendkit.testing.compare import (
    MEASURES,
    bitwise,
    calc_diff,
    close,
    compare,
    set_equal,
    ulp,
)
from ascendkit.testing.draw import PLACES, generator, normal, place, sub_seed, wide
from ascendkit.testing.indices import indices
from ascendkit.testing.routing import ROUTINGS, routing
from ascendkit.testing.scales import SCALES, amax_ties, scales
from ascendkit.testing.scores import FINITE_SCORES, SCORES, scores
from ascendkit.testing.sizes import ALIGNMENTS, COUNTS, around, sizes
from ascendkit.testing.verdict import Verdict, merge

__all__ = [
    "ALIGNMENTS",
    "COUNTS",
    "FINITE_SCORES",
    "MEASURES",
    "PLACES",
    "ROUTINGS",
    "SCALES",
    "SCORES",
    "Verdict",
    "amax_ties",
    "around",
    "bitwise",
    "calc_diff",
    "close",
    "compare",
    "generator",
    "indices",
    "merge",
    "normal",
    "place",
    "routing",
    "scales",
    "scores",
    "set_equal",
    "sizes",
    "sub_seed",
    "ulp",
    "wide",
]

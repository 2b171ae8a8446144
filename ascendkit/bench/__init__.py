"""Timing, ceilings measured in the same run, and records of both."""

from ascendkit.bench.case import measure
from ascendkit.bench.ceiling import Ceiling, Ceilings, num_sets
from ascendkit.bench.record import Record, from_json
from ascendkit.bench.store import append, load
from ascendkit.bench.timing import Timing, do_bench

__all__ = [
    "Ceiling",
    "Ceilings",
    "Record",
    "Timing",
    "append",
    "do_bench",
    "from_json",
    "load",
    "measure",
    "num_sets",
]

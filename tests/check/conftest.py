"""A toy component, written to a temporary folder and put in the registry's place."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from ascendkit import dispatch, library, platform, registry
from ascendkit.op import Op

INIT = """
from ascendkit import dispatch
SCHEMA = "(Tensor x, int k) -> Tensor"

def allocate(x, k):
    import torch
    return torch.empty_like(x)

def STEM(x, k, *, out=None, platform=None):
    if k < 0:
        raise ValueError(f"k: got {k}, wanted at least 0; nearest legal: 0")
    if x.device.type != "meta" and not x.isfinite().all():
        raise ValueError("x: got NaN or infinity, wanted finite values")
    return dispatch.call("toy.STEM", (x, k), {"n": x.shape[0], "k": k}, out=out,
                         platform=platform)
"""
REFERENCE = "def reference(x, k):\n    return x * k\n"
ORACLE = "def oracle(x, k):\n    return x * k\n"
COST = """
from ascendkit.cost import Cost
def cost(n):
    return Cost(dict(n=n)).flop("vector", "fp32", "scale", "n").read("x", "4*n").write("y", "4*n")
"""
CASES = """
from ascendkit import Case, Contract
CONTRACT = Contract("bitwise", oracle="NumPy product")

def cases():
    yield Case("plain", {"n": 33, "k": 3}, bench=True)
    yield Case("empty", {"n": 0, "k": 3}, level="core")
    yield Case("large", {"n": 4097, "k": 2}, level="full")
    yield Case("bad_k", {"n": 4, "k": -1}, error="ValueError")
    yield Case("nan", {"n": 4, "k": 1, "nan": True}, error="ValueError")

def inputs(case, seed):
    from ascendkit.testing import generator, normal
    x = normal((case.params["n"],), generator(seed))
    if case.params.get("nan"):
        x[0] = float("nan")
    return x, case.params["k"]
"""
ASCEND = """
from ascendkit import Support
def supports(case):
    return Support(case.params["k"] != 2, "k = 2 is not built")
def run(x, k, *, out):
    out.copy_(x * k)
"""

FILES = {"__init__": INIT, "reference": REFERENCE, "oracle": ORACLE, "cost": COST,
         "cases": CASES, "ascend": ASCEND}  # fmt: skip


class Toy:
    """``toy(name, file=text, ...)`` adds an op; text None leaves the file out.

    The toy's ``ascend.py`` runs plain torch on the CPU under the name of the emulator platform.
    """

    files = FILES

    def __init__(self, root: Path, table: dict[str, Op]) -> None:
        self.root, self.table = root, table

    def __call__(self, stem: str, **changed: str | None) -> Op:
        folder = self.root / stem
        folder.mkdir()
        texts = {f: t for f, t in {**FILES, **changed}.items() if t is not None}
        for file, text in texts.items():
            (folder / f"{file}.py").write_text(text.replace("STEM", stem))
        self.table[f"toy.{stem}"] = Op(f"toy.{stem}", "toy", folder, frozenset(texts))
        importlib.invalidate_caches()
        return self.table[f"toy.{stem}"]


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toy]:
    """An empty toy component that is the whole registry."""
    root = tmp_path / "toy"
    root.mkdir()
    (root / "__init__.py").write_text("")
    (root / "component.yaml").write_text("title: Toy\n")
    table: dict[str, Op] = {}
    component = registry.Component("toy", root)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "ops", lambda: table)
    monkeypatch.setattr(registry, "components", lambda: {"toy": component})
    monkeypatch.setattr(dispatch, "_emulated", nullcontext)
    probe = platform.available

    def available(name: str) -> platform.Available:
        """Toy kernels are plain torch: the emulator and a GPU need no compiler for them."""
        if name == "emulator" or (name == "cuda" and torch.cuda.is_available()):
            return platform.Available(True)
        return probe(name)

    monkeypatch.setattr(platform, "available", available)

    yield Toy(root, table)
    # A later test may give another op the same name.
    library.functional.cache_clear()
    library.mutating.cache_clear()
    for name in [n for n in sys.modules if n == "toy" or n.startswith("toy.")]:
        del sys.modules[name]

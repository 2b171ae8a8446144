"""``as_npu()`` leaves torch usable: the device kind it named keeps a module."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.emu

CODE = """
import torch
from ascendkit import emulator
from tilekernels.topk_gate import topk_gate

with emulator.as_npu():
    assert torch.npu.is_available()
assert not torch.npu.is_available()
torch.manual_seed(1)
x = torch.randn(4, 16)
compiled = torch.compile(lambda s: topk_gate(s, 2) + 1, backend="aot_eager", fullgraph=True)
assert torch.equal(compiled(x), topk_gate(x, 2) + 1)
layer = torch.nn.Linear(16, 4)
layer(x).sum().backward()
torch.optim.SGD(layer.parameters(), 0.1).step()
"""


def test_torch_compiles_seeds_and_trains_afterwards():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]

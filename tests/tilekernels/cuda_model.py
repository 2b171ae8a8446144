"""CUDA text that TileLang generates, compiled for this CPU, a fiber a thread: logic, not speed.

What the model cannot see: races within a warp that the hardware's order hides, alignment faults,
and how long anything takes.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
SIGNATURE = re.compile(
    r'extern "C" __global__ void __launch_bounds__\((\d+)[^)]*\) (\w+)\(([^)]*)\)'
)
# CUDA text beside a program's own; the model has its own functions of those names.
LOWER = re.compile(r"^__device__ __forceinline__ \w+ ak_\w+\(.*?^}$", re.M | re.S)
STATIC = re.compile(
    r"^( *)(?:extern )?__shared__ (?:__align__\(\d+\) )?([\w ]+?) (\w+)\[(\d*)\];", re.M
)


def lower(program: Any, **pass_configs: bool) -> str:
    """CUDA source of a TileLang program; no device compiler is called."""
    import tilelang
    from tilelang import tvm

    keys = tilelang.PassConfigKey
    config = {
        keys.TL_DISABLE_WARP_SPECIALIZED.value: True,
        **{keys[name].value: value for name, value in pass_configs.items()},
    }
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_90a"})
    with target, tvm.transform.PassContext(opt_level=3, config=config):
        lowered = tilelang.lower(program, target=target, enable_device_compile=False)
    return str(lowered.kernel_source)


class Model:
    """One kernel. Call it with the grid and its arguments by name."""

    def __init__(self, source: str, folder: Path) -> None:
        found = SIGNATURE.search(source)
        assert found is not None, source[:2000]
        self.threads, name = int(found[1]), found[2]
        self.arguments = [a.replace("__restrict__", "").split() for a in found[3].split(",")]
        at = iter(range(0, 1 << 20, 1 << 14))

        def place(m: re.Match[str]) -> str:
            kind, var, size = m[2].strip(), m[3], m[4]
            return (
                f"{m[1]}{kind}* {var} = ({kind}*)shared_at(0);"
                if not size
                else f"{m[1]}{kind}* {var} = ({kind}*)shared_at({next(at) + (1 << 16)});"
            )

        text = re.sub(r"^#include.*$|^#(?:if|endif|define|undef).*$", "", source, flags=re.M)
        text = STATIC.sub(place, LOWER.sub("", text))
        given, call = "", []
        for i, words in enumerate(self.arguments):
            kind = " ".join(words[:-1])
            value = f"({kind})args[{i}]" if "*" in kind else f"*({kind}*)args[{i}]"
            given += f"using T{i} = {kind}; "
            call.append(value)
        text = (
            '#include "cuda_model.h"\n'
            + text
            + "\nstatic void** args;\nstruct Kernel { static void body() { "
            + f"{name}({', '.join(call)}); }} }};\n"
            + 'extern "C" void run(int grid, int threads, unsigned seed, int many, void** given) {'
            + "\n  args = given;\n  launch<Kernel>(grid, threads, seed, many);\n}\n"
        )
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.cc").write_text(text)
        out = folder / f"{name}.so"
        command = ["g++", "-std=c++17", "-O1", "-w", "-ffp-contract=off", "-fno-strict-aliasing"]
        subprocess.run(
            [*command, "-fPIC", "-shared", f"-I{HERE}", str(folder / f"{name}.cc"), "-o", str(out)],
            check=True,
        )
        self.library = ctypes.CDLL(str(out))

    def __call__(self, grid: int, seed: int = 0, together: int = 1, **given: Any) -> None:
        """Run it. Tensors go by pointer, numbers by value; a tensor may be None.

        Args:
            together: blocks of a cluster.
        """
        kept, pointers = [], []
        for *kind, name in self.arguments:
            value = given[name]
            if "*" in "".join(kind):
                pointers.append(value.data_ptr() if isinstance(value, torch.Tensor) else 0)
            else:
                cell = (ctypes.c_float if "float" in kind else ctypes.c_int64)(value)
                kept.append(cell)
                pointers.append(ctypes.addressof(cell))
        self.library.run(
            grid,
            self.threads,
            seed & 0xFFFF,
            together,
            (ctypes.c_void_p * len(pointers))(*pointers),
        )

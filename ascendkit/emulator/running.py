"""``run``: one launch of a source text, a file, or a TileLang function."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ascendkit.emulator import judged
from ascendkit.emulator.kernel import CORES, EmulatedKernel, Run


def run(
    source_or_kernel: Any,
    *args: Any,
    grid: int | None = None,
    cores: int = CORES,
    name: str | None = None,
    pass_configs: Mapping[str, Any] | None = None,
    **launch: Any,
) -> Run:
    """Run one kernel.

    Args:
        source_or_kernel: AscendC text, the path of a ``.asc`` file, a TileLang ``prim_func``, or a
            kernel compiled inside ``active()``.
        args: for source: tensors and numbers in the kernel's own parameter order; otherwise in the
            function's order. Tensors are on the CPU and written in place.
        grid: blocks to launch; required for source, taken from the function otherwise.
        cores: AI cores of the emulated chip.
        name: which kernel, when the source holds several.
        pass_configs: TileLang pass options of a ``prim_func``.
        launch: ``threads`` (host threads), ``replay`` (seed of a random order), ``timeout_s``,
            ``check`` (run the judges; the result has their ``findings``).

    Raises:
        ValueError, TypeError: arguments do not fit.
        SourceError: the source is not AscendC for Ascend 950.
        EmulatorError: the kernel failed; says where.
    """
    from ascendkit.emulator.lowered import lowered_kernel, no_configs

    if isinstance(source_or_kernel, (str, Path)):
        no_configs(pass_configs, "source text")
        text = _text(source_or_kernel)
        kernel = EmulatedKernel(text, name)
        if grid is None:
            raise ValueError("grid: got None, wanted the number of blocks to launch")
        try:
            seconds = kernel.launch(args, grid=grid, cores=cores, **launch)
        finally:
            if launch.get("check") is not False:
                judged.keep(kernel, None, read=launch.get("check") is True)
        return Run(tuple(args), grid, seconds, kernel.kernel.name, findings=kernel.findings)
    if grid is not None:
        raise ValueError(f"grid: got {grid}, wanted none: a TileLang function has its own")
    lowered = lowered_kernel(source_or_kernel, pass_configs, "source text, a path or a prim_func")
    result = lowered(*args, cores=cores, **launch)
    outputs = tuple(args) if result is None else result
    if not isinstance(outputs, tuple):
        outputs = (outputs,) if hasattr(outputs, "shape") else tuple(outputs)
    return Run(
        outputs,
        lowered.last_grid,
        lowered.last_seconds,
        str(lowered.prim_func.attrs["global_symbol"]),
        findings=lowered.findings,
    )


def _text(source: str | Path) -> str:
    if isinstance(source, Path) or ("\n" not in source and source.endswith((".asc", ".cpp"))):
        return Path(source).read_text()
    return source

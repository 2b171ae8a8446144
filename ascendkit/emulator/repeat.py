"""One launch made again and again from the same inputs, with other options each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ascendkit.emulator.kernel import CORES, EmulatedKernel
from ascendkit.emulator.verdicts import RawFinding


class Repeated:
    """A kernel with its arguments; tensors get their first contents back before every launch.

    Args:
        kernel_or_source: as for ``run``: AscendC text, a path, a prim_func or a lowered kernel.
        args: tensors and numbers, outputs included.
        grid: blocks, for source text only.
        pass_configs: TileLang pass options, for a prim_func only.

    Raises:
        TypeError, ValueError: arguments do not fit.
    """

    def __init__(
        self,
        kernel_or_source: Any,
        args: Sequence[Any],
        *,
        grid: int | None = None,
        cores: int = CORES,
        name: str | None = None,
        pass_configs: Mapping[str, Any] | None = None,
    ) -> None:
        from ascendkit.emulator.lowered import lowered_kernel, no_configs
        from ascendkit.emulator.running import _text

        given = kernel_or_source
        if isinstance(given, (str, Path)):
            given = EmulatedKernel(_text(given), name)
        if isinstance(given, EmulatedKernel):
            no_configs(pass_configs, "source text")
        else:
            given = lowered_kernel(given, pass_configs, "source text, a path or a prim_func")
        self._options: dict[str, Any] = {"cores": cores, "threads": 1, "timeout_s": 60.0}
        if isinstance(given, EmulatedKernel):
            if grid is None:
                raise ValueError("grid: got None, wanted the number of blocks to launch")
            self._options["grid"] = grid
        self._kernel: Any = given
        self.args = tuple(args)
        self._before = [_bytes(a).clone() if _is_tensor(a) else None for a in args]

    @property
    def text(self) -> str:
        """The generated source."""
        kernel = self._kernel
        return str(kernel.text if isinstance(kernel, EmulatedKernel) else kernel.kernel_source)

    @property
    def origins(self) -> Any:
        """The Python lines of the source, None if unknown."""
        return getattr(self._kernel, "origins", None)

    @property
    def findings(self) -> tuple[RawFinding, ...]:
        """Of the last launch, if it was checked."""
        return tuple(self._kernel.findings)

    @property
    def blocks(self) -> int:
        """Of the last launch."""
        return int(self._options.get("grid", getattr(self._kernel, "last_blocks", 0)))

    def restore(self) -> None:
        """Give the tensors their first contents back."""
        for arg, before in zip(self.args, self._before):
            if before is not None:
                _bytes(arg).copy_(before)

    def launch(self, **options: Any) -> tuple[bytes, ...]:
        """Launch with options of ``EmulatedKernel.launch``; the bytes of every tensor afterwards.

        Raises:
            EmulatorError: the launch failed.
        """
        self.restore()
        options = {**self._options, **options}
        if isinstance(self._kernel, EmulatedKernel):
            self._kernel.launch(self.args, **options)
        else:
            self._kernel(*self.args, **options)
        return tuple(_bytes(a).numpy().tobytes() if _is_tensor(a) else b"" for a in self.args)


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "data_ptr")


def _bytes(tensor: Any) -> Any:
    """The whole storage behind a tensor, as bytes."""
    import torch

    storage = tensor.untyped_storage()
    return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))

"""A TileLang function lowered for the emulator: host function, kernels, outputs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from ascendkit.emulator import (
    arguments,
    fresh,
    host,
    judged,
    linemap,
    lowering_cache,
    origins,
    toolchain,
    verdicts,
)
from ascendkit.emulator.errors import EmulatorError
from ascendkit.emulator.kernel import CORES, EmulatedKernel, check_by_default
from ascendkit.errors import bad_type, bad_value

_lock = threading.RLock()
"""TVM's frontend state is global; one lowering at a time."""


def ascend_target() -> Any:
    """TileLang's Ascend target."""
    from tvm.target import Target

    return Target({"kind": "ascend"})


def lower(prim_func: Any, pass_configs: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Lower a ``T.prim_func``; returns the AscendC ``source`` and the ``host`` function in Python.

    Pass options are those that the function itself asks for, and ``pass_configs`` over them.

    Raises:
        TypeError: not a prim_func.
    """
    import tilelang
    from tilelang import tvm

    if not isinstance(prim_func, tvm.tirx.PrimFunc):
        raise wrong_kind("function", prim_func, "a TileLang prim_func")
    configs = {**_own_configs(prim_func), **(pass_configs or {})}

    def make() -> dict[str, str]:
        target = ascend_target()

        def run(instruments: Sequence[Any]) -> Any:
            with tvm.transform.PassContext(
                opt_level=3, config=configs, instruments=list(instruments)
            ):
                return tilelang.lower(prim_func, target=target, enable_device_compile=False)

        with _lock, target:
            artifact, lines = origins.traced(prim_func, run, target)
        text = {"source": artifact.kernel_source, "host": host.translate(artifact.host_mod)}
        return {**text, **lines}

    name = lowering_cache.key(prim_func, configs)
    return lowering_cache.remember(toolchain.cache_root() / "lowered", name, make)


def lowered_kernel(
    given: Any, pass_configs: Mapping[str, Any] | None = None, wanted: str = "a prim_func"
) -> LoweredKernel:
    """A prim_func, lowered with pass options; what is lowered already stays as it is.

    Raises:
        TypeError: something else, a ``@tilelang.jit`` function for one.
        ValueError: pass options of something lowered.
    """
    if isinstance(given, LoweredKernel):
        no_configs(pass_configs, "a compiled kernel")
        return given
    if not hasattr(given, "buffer_map"):
        raise wrong_kind("kernel", given, wanted)
    return LoweredKernel(given, None, pass_configs)


def no_configs(pass_configs: Mapping[str, Any] | None, what: str) -> None:
    """Refuse pass options where nothing is left to lower."""
    if pass_configs is not None:
        raise ValueError(f"pass_configs: got {dict(pass_configs)}, wanted none: {what} is lowered")


def wrong_kind(what: str, given: Any, wanted: str) -> TypeError:
    """The error for ``given``; of a ``@tilelang.jit`` function it says what to do."""
    if not hasattr(given, "get_tir"):
        return bad_type(what, given, wanted)
    return TypeError(
        f"{what}: got {type(given).__name__}, a function decorated with tilelang.jit, wanted "
        f'{wanted}; call it inside ascendkit.use("emulator", check=True), which judges what it '
        "runs, or pass fn.get_tir(...) with pass_configs=fn.pass_configs"
    )


def _own_configs(prim_func: Any) -> dict[str, Any]:
    return dict((prim_func.attrs or {}).get("tilelang_pass_configs", {}))


class LoweredKernel:
    """Calls like a compiled TileLang kernel: tensors and numbers in, outputs out.

    Args:
        prim_func: the function.
        out_idx: parameters that are allocated and returned instead of passed.
        pass_configs: TileLang pass options.
    """

    def __init__(
        self,
        prim_func: Any,
        out_idx: Sequence[int] | int | None = None,
        pass_configs: Mapping[str, Any] | None = None,
    ) -> None:
        self.prim_func = prim_func
        lowered = lower(prim_func, pass_configs)
        self.kernel_source = lowered["source"]
        self.origins = linemap.load(lowered, prim_func)
        self.result_idx = _indices(out_idx, len(prim_func.params))
        self._host = host.load(lowered["host"])
        self._kernels: dict[str, EmulatedKernel] = {}
        self._names = [_parameter_name(prim_func, p) for p in prim_func.params]
        self.last_seconds, self.last_grid, self.last_blocks = 0.0, 0, 0
        self.findings: tuple[verdicts.RawFinding, ...] = ()
        """Of all kernels of the last call, if it was checked."""

    def kernel(self, name: str) -> EmulatedKernel:
        """The emulated kernel called ``name`` in the source."""
        if name not in self._kernels:
            self._kernels[name] = EmulatedKernel(self.kernel_source, name)
        return self._kernels[name]

    def __call__(self, *inputs: Any, **launch: Any) -> Any:
        """Run. Keyword arguments are those of ``EmulatedKernel.launch``.

        Returns:
            None without outputs, the output, or the list of outputs.

        Raises:
            ValueError, TypeError: arguments do not fit the kernel's signature.
            EmulatorError: the kernel failed.
        """
        import torch

        # Inside as_npu() tensors claim to be elsewhere; here they are what they are.
        with torch._C.DisableTorchFunction():
            return self._run(inputs, launch)

    def _run(self, inputs: Sequence[Any], launch: dict[str, Any]) -> Any:
        values = self._with_outputs(inputs)
        meta = bool(launch.get("control"))
        packed = [arguments.pack(n, v, meta=meta) for n, v in zip(self._names, values)]
        self.last_seconds, self.last_grid, self.last_blocks = 0.0, 0, 0
        self.findings = ()
        launch.setdefault("cores", _cores())
        read = launch.get("check") is True
        launch.setdefault("check", _check())
        asked = launch["check"]
        checks = (check_by_default() if asked is None else asked) and not meta
        if checks:
            for i in self.result_idx:
                fresh.mark(values[i], allocated=True)
        for call in self._host(packed):
            kernel = self.kernel(call.name)
            count = len(kernel.kernel.parameters)
            args = [a.data if isinstance(a, host.Argument) else a for a in call.args]
            extents = args[count:]
            grid = int(extents[0]) if extents else 1
            self.last_grid = grid
            self.last_blocks += grid
            try:
                self.last_seconds += kernel.launch(args[:count], grid=grid, **launch)
            except EmulatorError as error:
                error.python = self.origins.told(error.line)
                raise
            finally:
                self.findings += kernel.findings
                if checks:
                    judged.keep(kernel, self.origins, read=read)
        outputs = [values[i] for i in self.result_idx]
        return None if not outputs else outputs[0] if len(outputs) == 1 else outputs

    def _with_outputs(self, inputs: Sequence[Any]) -> list[Any]:
        total, given = len(self._names), len(inputs)
        wanted = total - len(self.result_idx)
        if given != wanted:
            names = [n for i, n in enumerate(self._names) if i not in self.result_idx]
            raise bad_value("arguments", given, f"{wanted} ({', '.join(names)})")
        rest = iter(inputs)
        values = [None if i in self.result_idx else next(rest) for i in range(total)]
        if self.result_idx:
            known = self._symbols(values)
            for i in self.result_idx:
                values[i] = self._allocate(i, known)
        return values

    def _symbols(self, values: Sequence[Any]) -> dict[str, int]:
        """Symbolic dimensions, read off the inputs that mention them alone."""
        known: dict[str, int] = {}
        for param, value in zip(self.prim_func.params, values):
            if value is None:
                continue
            buffer = self.prim_func.buffer_map.get(param)
            if buffer is None:
                known[param.name] = value
                continue
            if not hasattr(value, "stride"):
                raise bad_type(str(buffer.name), value, "a torch tensor")
            for pattern, actual in (
                (buffer.shape, value.shape),
                (buffer.strides, value.stride()),
            ):
                for dim, size in zip(pattern, actual):
                    if type(dim).__name__ == "Var":
                        known.setdefault(dim.name, int(size))
        return known

    def _allocate(self, i: int, known: Mapping[str, int]) -> Any:
        import torch
        from tilelang.language.dtypes import dtype as tilelang_dtype

        buffer = self.prim_func.buffer_map[self.prim_func.params[i]]
        shape = [_evaluate(dim, known) for dim in buffer.shape]
        logical = tilelang_dtype(buffer.dtype)
        storage = logical.as_torch()
        if logical.bits < 8:
            shape[-1] = shape[-1] * logical.bits // 8
        return torch.empty(shape, dtype=storage)


def _cores() -> int:
    from ascendkit.emulator.hook import settings

    current = settings.get()
    return CORES if current is None else current.cores


def _check() -> bool | None:
    from ascendkit.emulator.hook import settings

    current = settings.get()
    return None if current is None else current.check


def _evaluate(dim: Any, known: Mapping[str, int]) -> int:
    from tilelang import tvm

    mapping = {}

    def visit(node: Any) -> None:
        if type(node).__name__ == "Var":
            if node.name not in known:
                raise ValueError(f"output dimension {node.name}: not given by any input")
            mapping[node] = tvm.tirx.const(known[node.name], node.dtype)

    tvm.tirx.stmt_functor.post_order_visit(dim, visit)
    value = tvm.arith.Analyzer().simplify(tvm.tirx.stmt_functor.substitute(dim, mapping))
    return int(value)


def _parameter_name(prim_func: Any, param: Any) -> str:
    buffer = prim_func.buffer_map.get(param)
    return str(buffer.name if buffer is not None else param.name)


def _indices(out_idx: Sequence[int] | int | None, count: int) -> list[int]:
    if out_idx is None:
        return []
    given = [out_idx] if isinstance(out_idx, int) else list(out_idx)
    for i in given:
        if not -count <= i < count:
            raise bad_value("out_idx", i, f"{-count}..{count - 1}")
    return [i % count for i in given]

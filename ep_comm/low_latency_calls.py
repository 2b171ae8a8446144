"""What low-latency calls check and do beside a dispatch and a combine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascendkit.errors import bad_type, bad_value
from ep_comm import checks
from ep_comm.combine.call import CombineCall
from ep_comm.dispatch.call import DispatchCall
from ep_comm.fp8 import BLOCK, PACK, cast_to_fp8, pack_ue8m0

if TYPE_CHECKING:
    import torch

    from ep_comm.buffer import EPBuffer
    from ep_comm.handle import EPHandle


@dataclass
class LowLatencyHandle:
    """What a combine needs; complete once the rows are received.

    Args:
        shape: of the blocks dispatch gave, (E/N, N * T, H).
    """

    shape: tuple[int, int, int]
    routing: EPHandle | None = None
    _combine_x: torch.Tensor | None = None

    def combine_x(self) -> torch.Tensor:
        """bf16 of that shape, made once."""
        import torch

        if self.routing is None:
            raise bad_value("handle", "rows not received yet", "the receive hook called first")
        if self._combine_x is None:
            device = self.routing.routing.device
            self._combine_x = torch.empty(self.shape, dtype=torch.bfloat16, device=device)
        return self._combine_x


@dataclass
class LowLatencyDispatch(DispatchCall):
    """A dispatch whose rows may be cast on their way, and whose waits may be counted."""

    use_fp8: bool = True
    round_scale: bool = False
    use_ue8m0: bool = False
    wait_stats: Any = None
    async_finish: bool = False
    hook: bool = False

    def _check(self) -> None:
        _one_end(self.async_finish, self.hook)
        _waits(self.buffer, self.wait_stats, "dispatch_wait_recv_cost_stats")
        if self.use_ue8m0 and not (self.use_fp8 and self.round_scale):
            raise bad_value("use_ue8m0", True, "False without use_fp8 and round_scale", False)
        if self.use_fp8:
            grain = BLOCK * (PACK if self.use_ue8m0 else 1)
            x = checks.tensor("x", self.x, (_bf16(),), 2, self.buffer.device)
            if not x.shape[1] or x.shape[1] % grain:
                near = checks.nearest_multiple(x.shape[1], grain)
                raise bad_value("hidden", x.shape[1], f"a multiple of {grain}", near)
            codes, scale = cast_to_fp8(x, self.round_scale)
            self.x = (codes, pack_ue8m0(scale) if self.use_ue8m0 else scale)
        super()._check()
        self.asked["round_scale"] = self.round_scale

    def main(self) -> None:
        """As a dispatch; remembers how long each source was waited for."""
        super().main()
        self.waited = self.path.hops[0].transport.waited

    def add_waits(self) -> None:
        """Into the statistics the caller gave."""
        _added(self.wait_stats, self.buffer.rank, self.waited)


@dataclass
class WeightedCombine(CombineCall):
    """A combine that applies weights at the token."""

    weights: Any = None
    given_idx: Any = None
    use_logfmt: bool = False
    zero_copy: bool = False
    async_finish: bool = False
    hook: bool = False
    out: Any = None
    wait_stats: Any = None

    def _check(self) -> None:
        b, given = self.buffer, self.handle
        _one_end(self.async_finish, self.hook)
        _waits(b, self.wait_stats, "combine_wait_recv_cost_stats")
        if self.use_logfmt:
            raise bad_value("use_logfmt", True, "False: rows travel as bf16", False)
        if b.multiple:
            raise bad_value(
                "buffer", "allow_multiple_reduction=True", "False for low-latency calls", False
            )
        if not isinstance(given, LowLatencyHandle):
            raise bad_type("handle", given, "what low_latency_dispatch returned")
        if given.routing is None:
            raise bad_value("handle", "rows not received yet", "the receive hook called first")
        if self.zero_copy and self.x is not given.combine_x():
            raise bad_value("zero_copy", True, "x from next_combine_buffer beside it", False)
        blocks = checks.tensor("x", self.x, (_bf16(),), 3, b.device)
        if blocks.shape != given.shape:
            raise bad_value("x", tuple(blocks.shape), str(given.shape), given.shape)
        self.handle = given.routing
        self.x = _real_rows(blocks, given.routing)
        super()._check()
        if self.given_idx is not self.handle.routing:
            raise bad_value("topk_idx", "another tensor", "the one given to dispatch")
        checks.weights(self.weights, tuple(self.handle.topk_idx.shape), "topk_weights", b.device)
        if self.weights is None:
            raise bad_type("topk_weights", None, "float32 [t, k]")
        if self.out is not None:
            wanted = (len(self.given_idx), blocks.shape[2])
            out = checks.tensor("out", self.out, (_bf16(),), 2, b.device)
            if tuple(out.shape) != wanted:
                raise bad_value("out", tuple(out.shape), str(wanted), wanted)

    def main(self) -> None:
        """As a combine; remembers how long each rank was waited for."""
        super().main()
        self.waited = self.handle.path.hops[0].transport.waited

    def epilogue(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The weighted sum."""
        import torch

        rows, table = self.got.rows, self.got.table
        total = torch.zeros((len(table), rows.shape[1]), device=rows.device)
        for j in range(table.shape[1]):
            here = (table[:, j] >= 0).nonzero().squeeze(1)
            picked = rows.index_select(0, table[here, j]).float()
            total[here] += picked * self.weights[here, j, None]
        return total.to(torch.bfloat16), None

    def add_waits(self) -> None:
        """Into the statistics the caller gave."""
        _added(self.wait_stats, self.buffer.rank, self.waited)


def _bf16() -> torch.dtype:
    import torch

    return torch.bfloat16


def _one_end(async_finish: bool, hook: bool) -> None:
    if async_finish and hook:
        raise bad_value("async_finish", True, "False beside return_recv_hook", False)


def _waits(buffer: EPBuffer, got: Any, name: str) -> None:
    """int64 [N, N], where the transport knows what it waited for."""
    import torch

    if got is None:
        return
    if buffer.grid.rail is not None or buffer.grid.whole.waited is None:
        how = "two hops" if buffer.grid.rail is not None else "rows of all ranks at once"
        raise bad_value(name, "a tensor", f"None on {buffer.backend}, {how}", None)
    checks.tensor(name, got, (torch.int64,), 2, buffer.device)
    shape = (buffer.size, buffer.size)
    if tuple(got.shape) != shape:
        raise bad_value(name, tuple(got.shape), str(shape), shape)


def _added(stats: Any, rank: int, waited: list[float] | None) -> None:
    if stats is None or waited is None:
        return
    import torch

    stats[rank] += torch.tensor([round(1e6 * s) for s in waited], dtype=torch.int64)


def _real_rows(blocks: torch.Tensor, routing: EPHandle) -> torch.Tensor:
    import torch

    sizes = routing.num_recv_tokens_per_expert_list
    return torch.cat([blocks[e, :n] for e, n in enumerate(sizes)])

"""Low-latency calls of DeepEP's first version: fixed sizes, one block of rows an expert, weights
applied where tokens are summed.

Outputs have their worst-case size from the start, ``[E/N, N * T, H]`` with a count an expert, so a
receive hook can fill them later. A buffer for these calls is made with
``allow_multiple_reduction=False``: rows travel back one a choice, and weights meet them at the
token. On the way out a token is sent once a rank, like every dispatch here; the first version sent
it once a choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascendkit.errors import bad_value
from ep_comm import checks
from ep_comm.combine.call import CombineCall
from ep_comm.event import EventOverlap

if TYPE_CHECKING:
    import torch

    from ep_comm.buffer import EPBuffer
    from ep_comm.handle import EPHandle

FP8_BLOCK, FP8_MAX, LEAST_AMAX = 128, 448.0, 1e-4
Hook = Callable[[], None]


@dataclass
class LowLatencyHandle:
    """What :func:`low_latency_combine` needs; complete once the rows are received."""

    num_rows: int
    routing: EPHandle | None = None


def low_latency_dispatch(
    buffer: EPBuffer,
    x: torch.Tensor,
    topk_idx: torch.Tensor,
    num_max_dispatch_tokens_per_rank: int,
    num_experts: int,
    cumulative_local_expert_recv_stats: torch.Tensor | None = None,
    use_fp8: bool = True,
    round_scale: bool = False,
    return_recv_hook: bool = False,
) -> tuple[Any, torch.Tensor, LowLatencyHandle, EventOverlap, Hook | None]:
    """Tokens to their experts, a block of rows an expert.

    Args:
        buffer: made with ``allow_multiple_reduction=False``.
        x: bf16 [t, H]; with ``use_fp8`` H is a multiple of 128.
        topk_idx: int64 [t, k].
        num_max_dispatch_tokens_per_rank: T, the same on all ranks.
        use_fp8: rows arrive as float8_e4m3fn with a float32 scale per 128 values.
        round_scale: scales are powers of two.
        return_recv_hook: return at once; the outputs are filled when the hook is called.

    Returns:
        (recv_x [E/N, N * T, H], or with scales [E/N, N * T, H/128] column-major beside it, int32
        counts [E/N], handle, event, hook or None). Rows beyond a count are not written.

    Raises:
        As :meth:`EPBuffer.dispatch`.
    """
    import torch

    share, rows = num_experts // buffer.size, buffer.size * num_max_dispatch_tokens_per_rank
    given: Any = x
    if use_fp8 and isinstance(x, torch.Tensor) and x.dim() == 2 and x.shape[1] % FP8_BLOCK == 0:
        given = cast_to_fp8(x, round_scale)
    elif use_fp8:
        # An argument that every check refuses, so that all ranks hear of it.
        given = (x, x)
    late = buffer.dispatch(
        given, topk_idx, None, cumulative_local_expert_recv_stats, num_experts,
        num_max_dispatch_tokens_per_rank, do_expand=True, async_with_compute_stream=True,
        defer_epilogue=True,
    )  # fmt: skip
    first = given[0] if use_fp8 else x
    recv = first.new_empty((share, rows, x.shape[1]))
    scales = None
    if use_fp8:
        scales = given[1].new_empty((share, x.shape[1] // FP8_BLOCK, rows)).transpose(1, 2)
    counts = torch.zeros(share, dtype=torch.int32, device=x.device)
    handle = LowLatencyHandle(rows)

    def receive() -> None:
        got, _, _, handle.routing = late.wait()
        sizes = handle.routing.num_recv_tokens_per_expert_list
        counts.copy_(handle.routing.num_unaligned_recv_tokens_per_expert)
        plain, sf = got if use_fp8 else (got, None)
        for e, block in enumerate(plain.split(sizes)):
            recv[e, : len(block)].copy_(block)
        if scales is not None and sf is not None:
            for e, block in enumerate(sf.split(sizes)):
                scales[e, : len(block)].copy_(block)

    out = (recv, scales) if use_fp8 else recv
    if return_recv_hook:
        return out, counts, handle, EventOverlap(), receive
    receive()
    return out, counts, handle, EventOverlap(), None


def low_latency_combine(
    buffer: EPBuffer,
    x: torch.Tensor,
    topk_idx: torch.Tensor,
    topk_weights: torch.Tensor,
    handle: LowLatencyHandle,
    out: torch.Tensor | None = None,
    return_recv_hook: bool = False,
) -> tuple[torch.Tensor, EventOverlap, Hook | None]:
    """Weighted sums of experts' rows, in choice order, in float32, rounded once.

    Args:
        x: bf16 [E/N, N * T, H], as dispatch gave.
        topk_idx: of that dispatch.
        topk_weights: float32 [t, k].
        out: bf16 [t, H]; written and returned.

    Returns:
        (combined bf16 [t, H], event, hook or None).

    Raises:
        As :meth:`EPBuffer.combine`.
    """
    import torch

    routing: Any = handle.routing
    rows: Any = x
    if routing is not None and isinstance(x, torch.Tensor) and x.dim() == 3:
        sizes = routing.num_recv_tokens_per_expert_list
        rows = torch.cat([x[e, :n] for e, n in enumerate(sizes)])
    call = WeightedCombine(
        buffer, rows, routing, None, None, True, True, None, False,
        name="low_latency_combine", weights=topk_weights, given_idx=topk_idx,
    )  # fmt: skip
    late = buffer.run_call(call, None, True, True)
    made = out if out is not None else x.new_empty((topk_idx.shape[0], x.shape[-1]))

    def receive() -> None:
        made.copy_(late.wait()[0])

    if return_recv_hook:
        return made, EventOverlap(), receive
    receive()
    return made, EventOverlap(), None


@dataclass
class WeightedCombine(CombineCall):
    """A combine that applies weights at the token."""

    weights: Any = None
    given_idx: Any = None

    def _check(self) -> None:
        if self.buffer.multiple:
            raise bad_value(
                "buffer", "allow_multiple_reduction=True", "False for low-latency calls", False
            )
        if self.handle is None:
            raise bad_value("handle", "rows not received yet", "the receive hook called first")
        super()._check()
        if self.given_idx is not self.handle.routing:
            raise bad_value("topk_idx", "another tensor", "the one given to dispatch")
        checks.weights(
            self.weights, tuple(self.handle.topk_idx.shape), "topk_weights", self.buffer.device
        )

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


def cast_to_fp8(x: torch.Tensor, round_scale: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """bf16 [t, H] as float8_e4m3fn and float32 scales [t, H/128]; a value is code * scale.

    Args:
        round_scale: scales are rounded up to powers of two.
    """
    import torch

    blocks = x.float().view(x.shape[0], -1, FP8_BLOCK)
    scale = blocks.abs().amax(-1).clamp(min=LEAST_AMAX) / FP8_MAX
    if round_scale:
        scale = torch.exp2(torch.ceil(torch.log2(scale)))
    codes = (blocks / scale[..., None]).to(torch.float8_e4m3fn)
    return codes.view(x.shape), scale

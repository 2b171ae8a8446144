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
from typing import TYPE_CHECKING, Any

from ep_comm.event import EventOverlap
from ep_comm.low_latency_calls import LowLatencyDispatch, LowLatencyHandle, WeightedCombine

if TYPE_CHECKING:
    import torch

    from ep_comm.buffer import EPBuffer

Hook = Callable[[], None]


def low_latency_dispatch(
    buffer: EPBuffer,
    x: torch.Tensor,
    topk_idx: torch.Tensor,
    num_max_dispatch_tokens_per_rank: int,
    num_experts: int,
    cumulative_local_expert_recv_stats: torch.Tensor | None = None,
    dispatch_wait_recv_cost_stats: torch.Tensor | None = None,
    use_fp8: bool = True,
    round_scale: bool = False,
    use_ue8m0: bool = False,
    async_finish: bool = False,
    return_recv_hook: bool = False,
) -> tuple[Any, torch.Tensor, LowLatencyHandle, EventOverlap, Hook | None]:
    """Tokens to their experts, a block of rows an expert.

    Args:
        buffer: made with ``allow_multiple_reduction=False``.
        x: bf16 [t, H]; with ``use_fp8`` H is a multiple of 128, with ``use_ue8m0`` of 512.
        topk_idx: int64 [t, k].
        num_max_dispatch_tokens_per_rank: T, the same on all ranks.
        cumulative_local_expert_recv_stats: int32 [E/N]; counts are added.
        dispatch_wait_recv_cost_stats: int64 [N, N]; microseconds this rank waited for the rows of
            each source are added to its row. On one-sided backends (threads, mpi), direct mode.
        use_fp8: rows arrive as float8_e4m3fn with a scale per 128 values.
        round_scale: scales are powers of two.
        use_ue8m0: four scales an int32, their exponents alone; needs ``round_scale``.
        async_finish: the outputs are filled when the event is waited for.
        return_recv_hook: the outputs are filled when the hook is called.

    Returns:
        (recv_x [E/N, N * T, H], or with it scales beside it, column-major: float32
        [E/N, N * T, H/128] or int32 [E/N, N * T, H/512]; int32 counts [E/N], handle, event, hook or
        None). Rows beyond a count are not written.

    Raises:
        As :meth:`EPBuffer.dispatch`.
    """
    import torch

    call = LowLatencyDispatch(
        buffer, x, topk_idx, None, cumulative_local_expert_recv_stats, num_experts,
        num_max_dispatch_tokens_per_rank, None, 0, 0, None, False, None, True, False, False, True,
        True, None, False, name="low_latency_dispatch", use_fp8=use_fp8, round_scale=round_scale,
        use_ue8m0=use_ue8m0, wait_stats=dispatch_wait_recv_cost_stats, async_finish=async_finish,
        hook=return_recv_hook,
    )  # fmt: skip
    late = buffer.run_call(call, None, True, True)
    share, hidden = num_experts // buffer.size, x.shape[1]
    rows = buffer.size * num_max_dispatch_tokens_per_rank
    recv = call.rows.new_empty((share, rows, hidden))
    scales = None
    if call.sf is not None:
        scales = call.sf.new_empty((share, call.sf.shape[1], rows)).transpose(1, 2)
    counts = torch.zeros(share, dtype=torch.int32, device=x.device)
    handle = LowLatencyHandle((share, rows, hidden))

    def receive() -> None:
        got, _, _, handle.routing = late.wait()
        call.add_waits()
        sizes = handle.routing.num_recv_tokens_per_expert_list
        counts.copy_(handle.routing.num_unaligned_recv_tokens_per_expert)
        plain, sf = got if use_fp8 else (got, None)
        for e, block in enumerate(plain.split(sizes)):
            recv[e, : len(block)].copy_(block)
        if scales is not None and sf is not None:
            for e, block in enumerate(sf.split(sizes)):
                scales[e, : len(block)].copy_(block)

    out = (recv, scales) if use_fp8 else recv
    return (out, counts, handle, *_finished(receive, async_finish, return_recv_hook))


def low_latency_combine(
    buffer: EPBuffer,
    x: torch.Tensor,
    topk_idx: torch.Tensor,
    topk_weights: torch.Tensor,
    handle: LowLatencyHandle,
    use_logfmt: bool = False,
    zero_copy: bool = False,
    async_finish: bool = False,
    return_recv_hook: bool = False,
    out: torch.Tensor | None = None,
    combine_wait_recv_cost_stats: torch.Tensor | None = None,
) -> tuple[torch.Tensor, EventOverlap, Hook | None]:
    """Weighted sums of experts' rows, in choice order, in float32, rounded once.

    Args:
        x: bf16 [E/N, N * T, H], as dispatch gave.
        topk_idx: of that dispatch.
        topk_weights: float32 [t, k].
        use_logfmt: must be False: rows travel as bf16.
        zero_copy: x is what :func:`next_combine_buffer` gave.
        async_finish, return_recv_hook: as in :func:`low_latency_dispatch`.
        out: bf16 [t, H]; written and returned.
        combine_wait_recv_cost_stats: as in :func:`low_latency_dispatch`.

    Returns:
        (combined bf16 [t, H], event, hook or None).

    Raises:
        As :meth:`EPBuffer.combine`.
    """
    call = WeightedCombine(
        buffer, x, handle, None, None, 0, 0, True, True, None, False, name="low_latency_combine",
        weights=topk_weights, given_idx=topk_idx, use_logfmt=use_logfmt, zero_copy=zero_copy,
        async_finish=async_finish, hook=return_recv_hook, out=out,
        wait_stats=combine_wait_recv_cost_stats,
    )  # fmt: skip
    late = buffer.run_call(call, None, True, True)
    made = out if out is not None else x.new_empty((topk_idx.shape[0], x.shape[-1]))

    def receive() -> None:
        made.copy_(late.wait()[0])
        call.add_waits()

    return (made, *_finished(receive, async_finish, return_recv_hook))


def next_combine_buffer(handle: LowLatencyHandle) -> torch.Tensor:
    """bf16 [E/N, N * T, H], not filled: where experts may write what :func:`low_latency_combine`
    takes with ``zero_copy``. The same tensor for every call with a handle."""
    return handle.combine_x()


def _finished(receive: Hook, asynchronous: bool, hooked: bool) -> tuple[EventOverlap, Hook | None]:
    event = EventOverlap()
    if hooked:
        return event, receive
    if asynchronous:
        event.register_hook_after_wait(receive)
    else:
        receive()
    return event, None

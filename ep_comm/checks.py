"""What a call's arguments must be. Each function raises; the buffer tells the other ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ascendkit.errors import bad_type, bad_value

if TYPE_CHECKING:
    import torch

    from ep_comm.handle import EPHandle

MAX_RANKS, MAX_EXPERTS, MAX_LOCAL_EXPERTS, MAX_TOPK = 1024, 2048, 512, 32
MAX_TOKENS = 1 << 24
MAX_SMS, MAX_QPS, MAX_LEVEL = 1024, 1024, 15
ROW_ALIGN = 16
"""Bytes; a row is a multiple of it."""
SF_BYTES = 4


def integer(name: str, got: Any, low: int, high: int) -> int:
    """An int (not a bool) in a range."""
    if not isinstance(got, int) or isinstance(got, bool):
        raise bad_type(name, got, "an int")
    if not low <= got <= high:
        raise bad_value(name, got, f"{low} to {high}", min(max(got, low), high))
    return got


def nearest_multiple(got: int, step: int) -> int:
    """The multiple of ``step`` nearest to ``got``, at least one step."""
    return max(1, (2 * got + step) // (2 * step)) * step


def nearest_divisor(got: int, whole: int) -> int:
    """The divisor of ``whole`` nearest to ``got``."""
    legal = (d for d in range(1, whole + 1) if whole % d == 0)
    return min(legal, key=lambda d: abs(d - got))


def row_step(element_size: int) -> int:
    """Values of so many bytes that make the least row; rows are multiples of it."""
    return ROW_ALIGN // element_size


def experts(num_experts: Any, ranks: int) -> int:
    """E: divided evenly by the ranks, within limits."""
    got = integer("num_experts", num_experts, 1, MAX_EXPERTS)
    if got % ranks:
        near = nearest_multiple(got, ranks)
        raise bad_value("num_experts", got, f"a multiple of the number of ranks {ranks}", near)
    if got // ranks > MAX_LOCAL_EXPERTS:
        most = MAX_LOCAL_EXPERTS * ranks
        raise bad_value("num_experts", got, f"at most {MAX_LOCAL_EXPERTS} a rank", most)
    return got


def tensor(name: str, got: Any, dtypes: Sequence[torch.dtype], dims: int, device: str) -> Any:
    """A contiguous tensor of one of these dtypes."""
    import torch

    if not isinstance(got, torch.Tensor):
        raise bad_type(name, got, "a torch.Tensor")
    if got.dtype not in dtypes:
        raise TypeError(f"{name}: got {got.dtype}, wanted {' or '.join(map(str, dtypes))}")
    if got.dim() != dims:
        raise bad_value(name, tuple(got.shape), f"{dims} dimensions")
    if not got.is_contiguous():
        raise bad_value(f"{name} strides", got.stride(), "contiguous")
    if got.device.type != device:
        raise bad_value(f"{name} device", str(got.device), f"{device}, where this buffer works")
    return got


def tokens(x: Any, device: str, most: int) -> tuple[torch.Tensor, torch.Tensor | None]:
    """bf16 rows, or (float8_e4m3fn rows, scales of 4 bytes in any strides)."""
    import torch

    if isinstance(x, (tuple, list)):
        if len(x) != 2:
            raise bad_value("x", f"{len(x)} tensors", "x, or (x, sf)")
        rows = tensor("x[0]", x[0], (torch.float8_e4m3fn,), 2, device)
        sf = x[1]
        if not isinstance(sf, torch.Tensor):
            raise bad_type("sf", sf, "a torch.Tensor")
        if sf.dim() != 2 or sf.element_size() != SF_BYTES or sf.shape[0] != rows.shape[0]:
            raise bad_value(
                "sf",
                f"{sf.dtype} {tuple(sf.shape)}",
                f"({rows.shape[0]}, packs) of a dtype of {SF_BYTES} bytes",
            )
    else:
        rows, sf = tensor("x", x, (torch.bfloat16,), 2, device), None
    size = rows.shape[1] * rows.element_size()
    if not size or size % ROW_ALIGN:
        step = row_step(rows.element_size())
        near = nearest_multiple(rows.shape[1], step)
        raise bad_value("hidden", rows.shape[1], f"a multiple of {step}", near)
    if rows.shape[0] > most:
        raise bad_value("x", f"{rows.shape[0]} tokens", f"<= num_max_tokens_per_rank {most}", most)
    return rows, sf


def routing(topk_idx: Any, num_tokens: int, num_experts: int, device: str, values: bool) -> None:
    """int64 [t, k]; with ``values``: in range, and no expert twice in a token."""
    import torch

    tensor("topk_idx", topk_idx, (torch.int64,), 2, device)
    t, k = topk_idx.shape
    if t != num_tokens:
        raise bad_value("topk_idx", f"{t} tokens", f"as many as x, {num_tokens}", num_tokens)
    integer("num_topk", k, 1, MAX_TOPK)
    if not values or not t:
        return
    low, high = int(topk_idx.min()), int(topk_idx.max())
    if low < -1 or high >= num_experts:
        bad = low if low < -1 else high
        near = min(max(bad, -1), num_experts - 1)
        raise bad_value("topk_idx", bad, f"-1 to num_experts - 1 = {num_experts - 1}", near)
    ranked = topk_idx.sort(dim=1).values
    twice = ((ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] >= 0)).nonzero()
    if len(twice):
        token, at = twice[0].tolist()
        expert = int(ranked[token, at])
        raise bad_value("topk_idx", f"expert {expert} twice in token {token}", "each once")


def weights(got: Any, shape: tuple[int, ...], name: str, device: str) -> None:
    """float32 of that shape, or None."""
    import torch

    if got is None:
        return
    tensor(name, got, (torch.float32,), len(shape), device)
    if tuple(got.shape) != shape:
        raise bad_value(name, tuple(got.shape), str(shape), shape)


def stats(got: Any, num_local: int, cached: bool, device: str) -> None:
    """int32 [E/N] that counts are added to; not in cached mode."""
    import torch

    if got is None:
        return
    if cached:
        raise bad_value(
            "cumulative_local_expert_recv_stats", "a tensor", "None with a handle", None
        )
    tensor("cumulative_local_expert_recv_stats", got, (torch.int32,), 1, device)
    if got.shape[0] != num_local:
        raise bad_value(
            "cumulative_local_expert_recv_stats", got.shape[0], f"{num_local} experts", num_local
        )


def handle(got: Any, buffer_id: int, given: dict[str, tuple[Any, Any]]) -> None:
    """A handle of this buffer whose routing is unchanged, and arguments that repeat it.

    Args:
        given: name -> (argument, value of the handle); None and 0 mean "as in the handle".
    """
    from ep_comm.handle import EPHandle

    if not isinstance(got, EPHandle):
        raise bad_type("handle", got, "an EPHandle that dispatch returned")
    if got.buffer_id != buffer_id:
        raise bad_value("handle", "one of another buffer", "one of this buffer")
    got.topk_idx  # noqa: B018  (raises where the routing was written after the dispatch)
    for name, (value, kept) in given.items():
        if value is not None and value != kept:
            raise bad_value(name, value, f"the handle's {kept}, or nothing", kept)


def bias(got: Any, shape: tuple[int, int], device: str) -> tuple[torch.Tensor, ...]:
    """None, one, or two bf16 tensors of the result's shape; as a tuple."""
    import torch

    if got is None:
        return ()
    many = tuple(got) if isinstance(got, (tuple, list)) else (got,)
    many = tuple(b for b in many if b is not None)
    if len(many) > 2:
        raise bad_value("bias", f"{len(many)} tensors", "at most 2", 2)
    for i, b in enumerate(many):
        tensor(f"bias[{i}]", b, (torch.bfloat16,), 2, device)
        if tuple(b.shape) != shape:
            raise bad_value(f"bias[{i}]", tuple(b.shape), str(shape), shape)
    return many


def switches(**given: Any) -> None:
    """Each of them true or false; TypeError else."""
    for name, got in given.items():
        if not isinstance(got, int) or got not in (0, 1):
            raise bad_type(name, got, "a bool")


def not_captured(name: str, device: str) -> None:
    """ValueError while the device's current stream records a graph, which no host can replay."""
    if device == "cpu":
        return
    import torch

    capturing = getattr(torch.get_device_module(device), "is_current_stream_capturing", bool)
    if capturing():
        raise bad_value(name, "a graph being captured", "a call outside it: hosts meet in it")


def queues(num_sms: Any, num_qps: Any, allocated: int) -> int:
    """The number of SMs, even; QPs at most those allocated, where that was said."""
    integer("num_sms", num_sms, 0, MAX_SMS)
    integer("num_qps", num_qps, 0, allocated or MAX_QPS)
    return int(num_sms + num_sms % 2)


def seconds(name: str, got: Any) -> None:
    """A number above 0."""
    if not isinstance(got, (int, float)) or isinstance(got, bool):
        raise bad_type(name, got, "seconds")
    if not got > 0:
        raise bad_value(name, got, "seconds above 0", 1)


def flags(
    do_expand: bool,
    do_zero_padding: bool,
    do_handle_copy: bool,
    defer_epilogue: bool,
    asynchronous: bool,
    previous_event: Any,
    allocate_on_comm_stream: bool,
) -> None:
    """Combinations that mean nothing."""
    from ep_comm.event import EventOverlap

    switches(
        do_expand=do_expand, do_zero_padding=do_zero_padding, do_handle_copy=do_handle_copy,
        defer_epilogue=defer_epilogue, async_with_compute_stream=asynchronous,
        allocate_on_comm_stream=allocate_on_comm_stream,
    )  # fmt: skip
    if do_handle_copy:
        raise bad_value(
            "do_handle_copy", True, "False: a handle keeps topk_idx by reference", False
        )
    if do_zero_padding and not do_expand:
        raise bad_value("do_zero_padding", True, "False without do_expand", False)
    if defer_epilogue and not asynchronous:
        raise bad_value("defer_epilogue", True, "async_with_compute_stream=True beside it", False)
    if previous_event is not None:
        if not isinstance(previous_event, EventOverlap):
            raise bad_type("previous_event", previous_event, "an EventOverlap")
        if not allocate_on_comm_stream:
            raise bad_value("allocate_on_comm_stream", False, "True with previous_event", True)


def expert_rows(x: Any, got: EPHandle, device: str) -> torch.Tensor:
    """bf16 rows for combine: one for every row dispatch gave, padding included or not."""
    import torch

    tensor("x", x, (torch.bfloat16,), 2, device)
    most = got.num_expanded_tokens if got.do_expand else got.num_recv_tokens
    if x.shape[0] != most and x.shape[0] != got.num_real_rows:
        raise bad_value("x", f"{x.shape[0]} rows", f"as dispatch gave: {most}", most)
    if not x.shape[1] or x.shape[1] * 2 % ROW_ALIGN:
        near = nearest_multiple(x.shape[1], row_step(2))
        raise bad_value("hidden", x.shape[1], "a multiple of 8", near)
    return x

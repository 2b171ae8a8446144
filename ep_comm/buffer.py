"""EPBuffer: dispatch and combine of expert parallelism over any backend.

Source of the interface: DeepEP 2.5.0. Every call is collective. Arguments are checked on every rank
and the verdicts exchanged before anything moves, so that a wrong call raises the same text
everywhere and leaves the buffer as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ascendkit.errors import bad_value
from ep_comm import checks
from ep_comm.agree import CAPACITY, agree
from ep_comm.calls import Calls
from ep_comm.combine.call import CombineCall
from ep_comm.connect import as_group
from ep_comm.dispatch.call import DispatchCall
from ep_comm.event import EventOverlap
from ep_comm.handle import EPHandle
from ep_comm.order import Arrivals
from ep_comm.size import buffer_size
from ep_comm.transport.torch_dist import DEVICE_OF

if TYPE_CHECKING:
    import torch


class EPBuffer(Calls):
    """Communication memory of one group of ranks.

    Args:
        group: an mpi4py communicator, a ProcessGroup (gloo, nccl, hccl), or an ep_comm group.
        num_bytes: size of the memory; or None, and it follows from the next four.
        num_max_tokens_per_rank, hidden: T and H.
        num_topk: k; 0 sizes for 32.
        use_fp8_dispatch: size for FP8 rows only. A buffer sized for bf16 serves both.
        deterministic: rows are sorted by source; otherwise they stand in order of arrival.
        allow_hybrid_mode: with several nodes, one copy a node over the network, then a copy a rank
            inside the node. Otherwise every rank is written directly.
        allow_multiple_reduction: sums on the expert's rank and node before rows travel back.
        num_cpu_timeout_secs: how long a peer may be late.
        explicitly_destroy: :meth:`destroy` will be called.
        arrival_seed: draw the order of arrival at random, to show that nothing depends on it.
        check_values: look at choices and raise for bad ones; by default on CPUs only.
        lb_allocation_plan_or_num_bytes: 0: the region for redundant experts is not part of this
            class.
        prefer_overlap_with_compute, sl_idx, num_allocated_qps, num_gpu_timeout_secs: accepted for
            the interface's sake; these backends have no use for them.

    Raises:
        ValueError: sizes that are not legal, on every rank with the same text.
    """

    def __init__(
        self,
        group: Any,
        num_bytes: int | None = None,
        num_max_tokens_per_rank: int = 0,
        hidden: int = 0,
        num_topk: int = 0,
        use_fp8_dispatch: bool = False,
        lb_allocation_plan_or_num_bytes: Any = 0,
        deterministic: bool = False,
        allow_hybrid_mode: bool = True,
        allow_multiple_reduction: bool = True,
        prefer_overlap_with_compute: bool = True,
        sl_idx: int | None = None,
        num_allocated_qps: int = 0,
        num_cpu_timeout_secs: float = 300,
        num_gpu_timeout_secs: float = 100,
        explicitly_destroy: bool = False,
        *,
        arrival_seed: int | None = None,
        check_values: bool | None = None,
    ) -> None:
        found = as_group(group)
        ranks, near = found.size, found.scaleup_ranks
        self.deterministic = deterministic
        self.num_max_tokens_per_rank = num_max_tokens_per_rank
        self.num_allocated_qps = num_allocated_qps
        error: Exception | None = None
        try:
            checks.not_captured("EPBuffer", DEVICE_OF.get(found.backend, "cpu"))
            checks.integer("number of ranks", ranks, 1, checks.MAX_RANKS)
            checks.switches(
                use_fp8_dispatch=use_fp8_dispatch, deterministic=deterministic,
                allow_hybrid_mode=allow_hybrid_mode, explicitly_destroy=explicitly_destroy,
                allow_multiple_reduction=allow_multiple_reduction,
                prefer_overlap_with_compute=prefer_overlap_with_compute,
            )  # fmt: skip
            if sl_idx is not None:
                checks.integer("sl_idx", sl_idx, 0, checks.MAX_LEVEL)
            checks.integer("num_allocated_qps", num_allocated_qps, 0, checks.MAX_QPS)
            checks.seconds("num_gpu_timeout_secs", num_gpu_timeout_secs)
            checks.seconds("num_cpu_timeout_secs", num_cpu_timeout_secs)
            if lb_allocation_plan_or_num_bytes:
                raise bad_value(
                    "lb_allocation_plan_or_num_bytes", lb_allocation_plan_or_num_bytes, "0", 0
                )
            if num_bytes is None:
                for name, got in (
                    ("num_max_tokens_per_rank", num_max_tokens_per_rank),
                    ("hidden", hidden),
                    ("num_topk", num_topk),
                ):
                    checks.integer(name, got, 0 if name == "num_topk" else 1, 1 << 24)
                num_bytes = self.get_buffer_size_hint(
                    found, num_max_tokens_per_rank, hidden, num_topk, use_fp8_dispatch,
                    allow_hybrid_mode, allow_multiple_reduction,
                )  # fmt: skip
            checks.integer("num_bytes", num_bytes, 0, 1 << 50)
        except (TypeError, ValueError) as e:
            error = e
        asked = {
            "num_bytes": num_bytes,
            "num_max_tokens_per_rank": num_max_tokens_per_rank,
            "scaleup_ranks": near,
            "allow_hybrid_mode": allow_hybrid_mode,
            "allow_multiple_reduction": allow_multiple_reduction,
            "deterministic": deterministic,
        }
        # Ranks must hear of a bad limit too, so they meet under the default one.
        bad = error is not None and "num_cpu_timeout_secs" in str(error)
        first = found.connect(0, CAPACITY, 300 if bad else num_cpu_timeout_secs)
        try:
            agree(first, "EPBuffer", asked, error)
        except (TypeError, ValueError):
            first.close()
            raise
        first.close()
        super().__init__(
            found, int(num_bytes or 0), num_cpu_timeout_secs, allow_hybrid_mode,
            allow_multiple_reduction, explicitly_destroy,
        )  # fmt: skip
        self.check_values = self.device == "cpu" if check_values is None else check_values
        self.order = Arrivals(arrival_seed, self.rank)

    @staticmethod
    def get_buffer_size_hint(
        group: Any,
        num_max_tokens_per_rank: int,
        hidden: int,
        num_topk: int = 0,
        use_fp8_dispatch: bool = False,
        allow_hybrid_mode: bool = True,
        allow_multiple_reduction: bool = True,
    ) -> int:
        """Bytes a buffer of these sizes needs; terms are in :func:`ep_comm.size.buffer_size`."""
        found = as_group(group)
        return buffer_size(
            num_max_tokens_per_rank,
            hidden,
            num_topk,
            scaleout_ranks=found.size // found.scaleup_ranks,
            scaleup_ranks=found.scaleup_ranks,
            use_fp8_dispatch=use_fp8_dispatch,
            allow_hybrid_mode=allow_hybrid_mode,
            allow_multiple_reduction=allow_multiple_reduction,
        ).num_bytes

    def dispatch(
        self,
        x: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
        topk_idx: torch.Tensor | None = None,
        topk_weights: torch.Tensor | None = None,
        cumulative_local_expert_recv_stats: torch.Tensor | None = None,
        num_experts: int | None = None,
        num_max_tokens_per_rank: int | None = None,
        expert_alignment: int | None = None,
        num_sms: int = 0,
        num_qps: int = 0,
        previous_event: EventOverlap | None = None,
        async_with_compute_stream: bool = False,
        allocate_on_comm_stream: bool = False,
        handle: EPHandle | None = None,
        do_handle_copy: bool = False,
        do_cpu_sync: bool | None = None,
        do_expand: bool = False,
        do_zero_padding: bool = False,
        use_tma_aligned_col_major_sf: bool = False,
        defer_epilogue: bool = False,
    ) -> Any:
        """Tokens to the ranks of their experts.

        Args:
            x: bf16 [t, H], or (float8_e4m3fn [t, H], scales of 4 bytes [t, packs] in any strides);
                t <= T, a row a multiple of 16 bytes.
            topk_idx: int64 [t, k], experts, distinct in a token, -1 for none. Kept by reference.
            topk_weights: float32 [t, k], or None.
            cumulative_local_expert_recv_stats: int32 [E/N]; unaligned counts are added.
            num_experts: E. With a handle it may be left out, like the next two.
            num_max_tokens_per_rank: T; the buffer's by default; the same on all ranks.
            expert_alignment: A, 1 by default.
            handle: routing of an earlier dispatch (cached mode); topk_idx must be None.
            do_cpu_sync: exact sizes; False gives worst-case sizes, counts are in the handle.
            do_expand: one row a (token, local expert), grouped by expert.
            do_zero_padding: gap rows between experts are zero.
            use_tma_aligned_col_major_sf: scales with strides (1, rows rounded up to 4).
            previous_event, async_with_compute_stream, allocate_on_comm_stream: overlap.
            defer_epilogue: copies run at ``wait()`` of the event, which is all that is returned.
            num_sms, num_qps: SMs, rounded up to even, are kept in the handle; QPs are at most those
                allocated. These backends have no use for them.
            do_handle_copy: must be False.

        Returns:
            (recv_x or (recv_x, recv_sf), recv_topk_idx, recv_topk_weights, handle, event). Not
            expanded: [R, H], int64 [R, k] local experts or -1, float32 [R, k]. Expanded: [X, H],
            None, float32 [X].

        Raises:
            ValueError, TypeError: the same text on every rank; nothing was sent.
            PeerTimeout, PeerFailed: a peer is late or gone; the buffer cannot be used any more.
        """
        call = DispatchCall(
            self, x, topk_idx, topk_weights, cumulative_local_expert_recv_stats, num_experts,
            num_max_tokens_per_rank, expert_alignment, num_sms, num_qps, handle, do_handle_copy,
            do_cpu_sync, do_expand, do_zero_padding, use_tma_aligned_col_major_sf,
            defer_epilogue, async_with_compute_stream, previous_event, allocate_on_comm_stream,
        )  # fmt: skip
        return self.run_call(call, previous_event, async_with_compute_stream, defer_epilogue)

    def combine(
        self,
        x: torch.Tensor,
        handle: EPHandle,
        topk_weights: torch.Tensor | None = None,
        bias: Any = None,
        num_sms: int = 0,
        num_qps: int = 0,
        previous_event: EventOverlap | None = None,
        async_with_compute_stream: bool = False,
        allocate_on_comm_stream: bool = False,
        defer_epilogue: bool = False,
    ) -> Any:
        """Rows of experts back to their tokens, summed. Router weights are not applied here.

        Args:
            x: bf16, a row for every row dispatch gave: [R, H], already summed over local experts,
                or [X, H].
            handle: of that dispatch.
            topk_weights: float32 [R, k] or [X]; comes back as [t, k].
            bias: none, one or two bf16 [t, H], added first; with ``defer_epilogue`` read at
                ``wait()``.
            others: as in :meth:`dispatch`.

        Returns:
            (combined_x bf16 [t, H], combined_topk_weights [t, k] or None, event).

        Raises:
            As :meth:`dispatch`.
        """
        call = CombineCall(
            self, x, handle, topk_weights, bias, num_sms, num_qps,
            defer_epilogue, async_with_compute_stream, previous_event, allocate_on_comm_stream,
        )  # fmt: skip
        return self.run_call(call, previous_event, async_with_compute_stream, defer_epilogue)

    def barrier(
        self,
        wait_comm_stream: bool = True,
        with_cpu_sync: bool = False,
        sequential: bool = True,
    ) -> None:
        """Return when every rank has called it.

        Args:
            wait_comm_stream, sequential: accepted for the interface's sake: hosts meet after
                everything they issued before, one after the other.
            with_cpu_sync: first wait until the device has finished, too.
        """
        error = None
        try:
            checks.switches(
                wait_comm_stream=wait_comm_stream, with_cpu_sync=with_cpu_sync,
                sequential=sequential,
            )  # fmt: skip
        except TypeError as e:
            error = e
        if with_cpu_sync and error is None and self.device != "cpu":
            import torch

            torch.get_device_module(self.device).synchronize()
        self._collective("barrier", {}, error)

    def capture(self) -> EventOverlap:
        """An event behind everything issued so far."""
        return EventOverlap(self._stream.event())

    def get_physical_domain_size(self) -> tuple[int, int]:
        """(scale-out, scale-up) ranks as the machine has them."""
        near = self.group.scaleup_ranks
        return self.size // near, near

    def get_logical_domain_size(self) -> tuple[int, int]:
        """(scale-out, scale-up) ranks as rows travel: (1, N) in direct mode."""
        return self.grid.shape

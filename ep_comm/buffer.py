"""EPBuffer: dispatch and combine of expert parallelism over any backend.

Source of the interface: DeepEP 2.5.0. Every call is collective. Arguments are checked on every rank
and the verdicts exchanged before anything moves, so that a wrong call raises the same text
everywhere and leaves the buffer as it was.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ascendkit.errors import bad_value
from ep_comm import checks
from ep_comm.agree import agree
from ep_comm.combine.call import CombineCall
from ep_comm.connect import as_group, connect
from ep_comm.dispatch.call import DispatchCall
from ep_comm.errors import PeerFailed, PeerTimeout
from ep_comm.event import CommStream, EventOverlap
from ep_comm.handle import EPHandle
from ep_comm.order import Arrivals
from ep_comm.size import BUFFER_ALIGN, align, buffer_size, total

if TYPE_CHECKING:
    import torch

_ids = itertools.count()


class EPBuffer:
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
        self.group = as_group(group)
        ranks, near = self.group.size, self.group.scaleup_ranks
        self.deterministic, self.multiple = deterministic, allow_multiple_reduction
        self.num_max_tokens_per_rank = num_max_tokens_per_rank
        error: Exception | None = None
        try:
            checks.integer("number of ranks", ranks, 1, checks.MAX_RANKS)
            if lb_allocation_plan_or_num_bytes:
                raise bad_value(
                    "lb_allocation_plan_or_num_bytes", lb_allocation_plan_or_num_bytes, "0", 0
                )
            if num_bytes is None:
                num_bytes = self.get_buffer_size_hint(
                    self.group, num_max_tokens_per_rank, hidden, num_topk, use_fp8_dispatch,
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
        first = self.group.connect(0, 8192, num_cpu_timeout_secs)
        try:
            agree(first, "EPBuffer", asked, error)
        finally:
            first.close()
        self.num_bytes = int(num_bytes or 0)
        self.grid = connect(self.group, self.num_bytes, num_cpu_timeout_secs, allow_hybrid_mode)
        self.rank, self.size, self.backend = self.group.rank, ranks, self.group.backend
        self.device = getattr(self.grid.whole, "device", "cpu")
        self.check_values = self.device == "cpu" if check_values is None else check_values
        self.order = Arrivals(arrival_seed, self.rank)
        self.id = next(_ids)
        self.calls = 0
        self.pending = ""
        self._explicit, self._destroyed, self._broken = explicitly_destroy, False, ""
        self._stream = CommStream(f"ep_comm-{self.rank}", self.device)

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
            num_sms, num_qps: kept in the handle; these backends have no use for them.
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
            num_max_tokens_per_rank, expert_alignment, num_sms, handle, do_handle_copy,
            do_cpu_sync, do_expand, do_zero_padding, use_tma_aligned_col_major_sf,
            defer_epilogue, async_with_compute_stream, previous_event, allocate_on_comm_stream,
        )  # fmt: skip
        return self._run(call, previous_event, async_with_compute_stream, defer_epilogue)

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
            self, x, handle, topk_weights, bias,
            defer_epilogue, async_with_compute_stream, previous_event, allocate_on_comm_stream,
        )  # fmt: skip
        return self._run(call, previous_event, async_with_compute_stream, defer_epilogue)

    def barrier(self) -> None:
        """Return when every rank has called it."""
        self._collective("barrier", {}, None)

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

    def destroy(self) -> None:
        """Give the memory back; collective, after everything issued is done.

        Raises ValueError without ``explicitly_destroy``, and the second time.
        """
        if not self._explicit:
            raise bad_value("EPBuffer.destroy", "a call", "explicitly_destroy=True in the ctor")
        if self._destroyed:
            raise ValueError("EPBuffer.destroy: got a second call, wanted one")
        self._stream.drain()
        if not self._broken:
            self._collective("destroy", {}, None)
        self._destroyed = True
        self._stream.close()
        # Memory of a broken group stays: giving it back would wait for the rank that is gone.
        if not self._broken:
            for transport in self.grid.all():
                transport.close()

    def check_capacity(self, part: str, most: int, hidden: int, num_topk: int, fp8: bool) -> None:
        """ValueError where the buffer is too small for the worst case of a call."""
        so, su = self.grid.shape
        size = buffer_size(
            most, hidden, num_topk, scaleout_ranks=so, scaleup_ranks=su, use_fp8_dispatch=fp8,
            allow_multiple_reduction=self.multiple,
        )  # fmt: skip
        terms = size.dispatch if part == "dispatch" else size.combine
        need = total(terms)
        if need > self.num_bytes:
            told = ", ".join(f"{t.what} {t.bytes}" for t in terms if t.bytes)
            raise bad_value(
                "num_bytes of the buffer",
                self.num_bytes,
                f">= {need} for {part} of {most} tokens x {hidden}, k {num_topk} ({told})",
                align(need, BUFFER_ALIGN),
            )

    # -- how a call runs --------------------------------------------------------------------------
    def _run(
        self, call: Any, after: EventOverlap | None, asynchronous: bool, deferred: bool
    ) -> Any:
        error = call.check()
        if error is None and self.pending:
            error = bad_value(
                f"EPBuffer.{call.name}", f"a call before wait() of {self.pending}", "wait() first"
            )
        if isinstance(after, EventOverlap) and after.event is not None:
            after.event.wait()
        self._collective(call.name, call.asked if error is None else {}, error)
        self.calls += 1
        call.number = self.calls
        main = self._guarded(call.name, call.main)
        if not asynchronous:
            self._stream.inline(main)
            return call.results(call.epilogue(), EventOverlap())
        event = EventOverlap(self._stream.issue(main, None))
        if deferred:
            self.pending = f"{call.name} {call.number}"
            event.register_hook_after_wait(lambda: self._late(call))
            return event
        return self._finish_async(call, event)

    def _finish_async(self, call: Any, event: EventOverlap) -> Any:
        # Sizes are exact only once counts are here, so results exist when the rows do.
        if event.event is not None:
            event.event.wait()
        return call.results(call.epilogue(), EventOverlap(self._stream.event()))

    def _late(self, call: Any) -> Any:
        self.pending = ""
        return call.results(call.epilogue(), None)

    def _collective(self, name: str, asked: dict[str, Any], error: Exception | None) -> None:
        if self._destroyed:
            raise ValueError(f"EPBuffer.{name}: got a destroyed buffer, wanted a live one")
        if self._broken:
            raise PeerFailed(f"EPBuffer.{name}: this buffer lost a peer before: {self._broken}")
        self._stream.drain()
        self._guarded(name, lambda: agree(self.grid.whole, name, asked, error), quiet=True)()

    def _guarded(self, name: str, work: Callable[[], Any], quiet: bool = False) -> Any:
        """``work`` that tells the peers where it fails alone, and closes the buffer."""

        def run() -> Any:
            try:
                return work()
            except (PeerTimeout, PeerFailed) as e:
                self._broken = str(e)
                raise
            except Exception as e:
                if not quiet:
                    self._broken = f"{type(e).__name__}: {e}"
                    for transport in self.grid.all():
                        transport.fail(f"rank {self.rank} in {name}: {self._broken}")
                raise

        return run

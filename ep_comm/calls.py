"""How the calls of a buffer run: agreed upon, in order, and so that a failure is everybody's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ascendkit.errors import bad_value
from ep_comm import checks
from ep_comm.agree import agree
from ep_comm.connect import Group, connect
from ep_comm.errors import PeerFailed, PeerTimeout
from ep_comm.event import CommStream, EventOverlap
from ep_comm.size import BUFFER_ALIGN, align, buffer_size, total

if TYPE_CHECKING:
    from ep_comm.path import Grid

_ids = itertools.count()


class Calls:
    """A buffer's connections and its calls in flight.

    Args:
        group: of ranks.
        num_bytes: memory a rank; every rank has agreed to it.
        timeout_s: how long a peer may be late.
        hybrid: two hops where there are several nodes.
        multiple: sums on the way back.
        explicit: :meth:`destroy` will be called.
    """

    def __init__(
        self,
        group: Group,
        num_bytes: int,
        timeout_s: float,
        hybrid: bool,
        multiple: bool,
        explicit: bool,
    ) -> None:
        self.group, self.num_bytes, self.multiple = group, num_bytes, multiple
        self.grid: Grid = connect(group, num_bytes, timeout_s, hybrid)
        self.rank, self.size, self.backend = group.rank, group.size, group.backend
        self.device: str = getattr(self.grid.whole, "device", "cpu")
        self.id = next(_ids)
        self.calls = 0
        self.pending = ""
        self.explicitly_destroy, self._destroyed, self._broken = explicit, False, ""
        self._stream = CommStream(f"ep_comm-{self.rank}", self.device)

    def destroy(self) -> None:
        """Give the memory back; collective, after everything issued is done.

        Raises ValueError without ``explicitly_destroy``, and the second time.
        """
        if not self.explicitly_destroy:
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

    @property
    def main_context(self) -> Grid:
        """The connections of this buffer."""
        return self.grid

    def print_memory_usage(self) -> None:
        """One line on stdout: memory of this rank, and what rows pass through it."""
        so, su = self.grid.shape
        hops = "two hops" if self.grid.rail is not None else "one hop"
        owner = "the library's, made for every call" if self.grid.owned else "kept"
        print(
            f"EPBuffer {self.id}, rank {self.rank} of {self.size} ({self.backend}, {so} x {su}): "
            f"{self.num_bytes:,} bytes ({self.num_bytes / 2**30:.3f} GiB), {hops}, "
            f"memory for rows: {owner}",
            flush=True,
        )

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
    def run_call(
        self, call: Any, after: EventOverlap | None, asynchronous: bool, deferred: bool
    ) -> Any:
        """Check, agree, move and finish a call; its event alone where it is deferred."""
        error = call.check()
        try:
            checks.not_captured(f"EPBuffer.{call.name}", self.device)
        except ValueError as e:
            error = e
        if error is None and self.pending:
            error = bad_value(
                f"EPBuffer.{call.name}", f"a call before wait() of {self.pending}", "wait() first"
            )
        if error is None and after is not None and after.event is not None:
            try:
                after.event.wait()
            except Exception as e:
                error = ValueError(f"previous_event: the work behind it failed: {e}")
        self._collective(call.name, call.asked if error is None else {}, error)
        self.calls += 1
        call.number = self.calls
        main = self._guarded(call.name, call.main)
        if not asynchronous:
            self._stream.inline(main)
            return call.results(self._finished(call), EventOverlap())
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
        return call.results(self._finished(call), EventOverlap(self._stream.event()))

    def _late(self, call: Any) -> Any:
        if self._destroyed:
            raise ValueError(
                f"wait() of {call.name} {call.number}: got a destroyed buffer, wanted a live one: "
                "its rows are gone"
            )
        self.pending = ""
        return call.results(self._finished(call), None)

    @staticmethod
    def _finished(call: Any) -> Any:
        import torch

        with torch.no_grad():
            return call.epilogue()

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
            import torch

            try:
                # Gradients are the business of ep_comm.autograd; copies into a peer have none.
                with torch.no_grad():
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

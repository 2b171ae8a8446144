"""One call of combine: check, move, sum."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ascendkit.errors import bad_value
from ep_comm import checks
from ep_comm.reduce import reduce

if TYPE_CHECKING:
    import torch

    from ep_comm.buffer import EPBuffer
    from ep_comm.event import EventOverlap
    from ep_comm.handle import EPHandle
    from ep_comm.path import Returned


@dataclass
class CombineCall:
    """Arguments of :meth:`EPBuffer.combine`, and its steps."""

    buffer: EPBuffer
    x: torch.Tensor
    handle: EPHandle
    topk_weights: torch.Tensor | None
    bias: Any
    num_sms: int
    num_qps: int
    deferred: bool
    asynchronous: bool
    previous_event: EventOverlap | None
    on_comm_stream: bool
    name: str = "combine"
    number: int = 0
    asked: dict[str, Any] = field(default_factory=dict)

    def check(self) -> Exception | None:
        """What is wrong with the arguments; fills :attr:`asked` where nothing is."""
        try:
            self._check()
        except Exception as e:
            # Whatever is wrong here, the other ranks are on their way and must hear of it.
            return e
        return None

    def _check(self) -> None:
        b, h = self.buffer, self.handle
        checks.flags(
            False, False, False, self.deferred, self.asynchronous, self.previous_event,
            self.on_comm_stream,
        )  # fmt: skip
        checks.handle(h, b.id, {})
        checks.queues(self.num_sms, self.num_qps, b.num_allocated_qps)
        x = checks.expert_rows(self.x, h, b.device)
        t, k = h.topk_idx.shape
        self.biases = checks.bias(self.bias, (t, x.shape[1]), b.device)
        if self.topk_weights is not None:
            if h.do_expand and not b.multiple:
                raise bad_value(
                    "topk_weights", "a tensor", "None in the expanded layout without multiple "
                    "reduction",
                )  # fmt: skip
            shape = (len(x),) if h.do_expand else (len(x), k)
            checks.weights(self.topk_weights, shape, "topk_weights", b.device)
        b.check_capacity("combine", h.num_max_tokens_per_rank, x.shape[1], k, False)
        self.asked = {
            "hidden": x.shape[1],
            "weights": self.topk_weights is not None,
            "handle of dispatch": h.number,
        }

    def main(self) -> None:
        """Partial sums, and everything that talks to peers."""
        done, b = self.handle.placement, self.buffer
        x, weights = _whole(self.x, done.num_out), self.topk_weights
        if weights is not None:
            weights = self._by_choice(_whole(weights, done.num_out))
        a_choice = done.expanded is not None and not b.multiple
        if done.expanded is None:
            x = x if done.row is None else done.arrivals(x)
        elif b.multiple:
            x = self._summed(x)
        else:
            places = done.arrivals(done.expanded)
            x = x[places[places >= 0]]
        self.got: Returned = self.handle.path.back(x, weights, b.multiple, a_choice, self.name)

    def epilogue(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The last sum; no peer takes part."""
        return self.got.summed(self.biases), self.got.merged()

    def results(
        self, outputs: tuple[torch.Tensor, torch.Tensor | None], event: EventOverlap | None
    ) -> tuple[Any, ...]:
        """What the caller gets; a deferred call returns no event of its own."""
        return outputs if event is None else (*outputs, event)

    def _summed(self, x: torch.Tensor) -> torch.Tensor:
        """Expanded rows to one a token, in choice order, in order of arrival."""
        import torch

        done = self.handle.placement
        assert done.expanded is not None
        return reduce(x.contiguous(), done.arrivals(done.expanded).to(torch.int32).contiguous())

    def _by_choice(self, weights: torch.Tensor) -> torch.Tensor:
        """float32 [R, k] in order of arrival."""
        import torch

        done = self.handle.placement
        if done.expanded is None:
            return done.arrivals(weights)
        if not len(weights):
            return weights.new_zeros(done.local.shape)
        out = torch.where(done.expanded >= 0, weights[done.expanded.clamp(min=0)], 0.0)
        return done.arrivals(out)


def _whole(rows: torch.Tensor, count: int) -> torch.Tensor:
    """``count`` rows: the first of them, or with zeros for padding a caller left out."""
    if len(rows) >= count:
        return rows[:count]
    more = rows.new_zeros((count - len(rows), *rows.shape[1:]))
    import torch

    return torch.cat([rows, more])

"""One call of dispatch: check, move, place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ep_comm import checks
from ep_comm.handle import EPHandle, version_of
from ep_comm.path import Path
from ep_comm.placement import Placement, compacted, place

if TYPE_CHECKING:
    import torch

    from ep_comm.buffer import EPBuffer
    from ep_comm.event import EventOverlap
    from ep_comm.hop import Hop


@dataclass
class DispatchCall:
    """Arguments of :meth:`EPBuffer.dispatch`, and its steps."""

    buffer: EPBuffer
    x: Any
    topk_idx: torch.Tensor | None
    topk_weights: torch.Tensor | None
    stats: torch.Tensor | None
    num_experts: int | None
    most: int | None
    alignment: int | None
    num_sms: int
    num_qps: int
    handle: EPHandle | None
    do_handle_copy: bool
    do_cpu_sync: bool | None
    do_expand: bool
    do_zero_padding: bool
    column_major: bool
    deferred: bool
    asynchronous: bool
    previous_event: EventOverlap | None
    on_comm_stream: bool
    name: str = "dispatch"
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
            self.do_expand, self.do_zero_padding, self.do_handle_copy, self.deferred,
            self.asynchronous, self.previous_event, self.on_comm_stream,
        )  # fmt: skip
        if h is not None:
            given = {
                "num_experts": (self.num_experts, getattr(h, "num_experts", None)),
                "num_max_tokens_per_rank": (
                    self.most,
                    getattr(h, "num_max_tokens_per_rank", None),
                ),
                "expert_alignment": (self.alignment, getattr(h, "expert_alignment", None)),
                "topk_idx": (None if self.topk_idx is None else "a tensor", None),
                "do_cpu_sync": (self.do_cpu_sync or None, False),
                "do_expand": (self.do_expand, getattr(h, "do_expand", None)),
            }
            checks.handle(h, b.id, given)
            self.num_experts, self.alignment = h.num_experts, h.expert_alignment
            self.most, self.topk_idx = h.num_max_tokens_per_rank, h.topk_idx
        if self.num_experts is None:
            raise ValueError("num_experts: got None, wanted a number without a handle")
        self.most = b.num_max_tokens_per_rank if self.most is None else self.most
        self.alignment = 1 if self.alignment is None else self.alignment
        checks.integer("num_max_tokens_per_rank", self.most, 1, checks.MAX_TOKENS)
        checks.integer("expert_alignment", self.alignment, 1, 1 << 16)
        checks.switches(
            do_cpu_sync=self._synced() if self.do_cpu_sync is None else self.do_cpu_sync,
            use_tma_aligned_col_major_sf=self.column_major,
        )
        self.num_sms = checks.queues(self.num_sms, self.num_qps, b.num_allocated_qps)
        experts = checks.experts(self.num_experts, b.size)
        rows, sf = checks.tokens(self.x, b.device, self.most)
        if self.topk_idx is None:
            raise ValueError("topk_idx: got None, wanted int64 [t, k] without a handle")
        if h is None:
            checks.routing(self.topk_idx, len(rows), experts, b.device, b.check_values)
        elif len(rows) != len(self.topk_idx):
            raise ValueError(f"x: got {len(rows)} tokens, wanted the handle's {len(self.topk_idx)}")
        k = self.topk_idx.shape[1]
        checks.weights(self.topk_weights, (len(rows), k), "topk_weights", b.device)
        checks.stats(self.stats, experts // b.size, h is not None, b.device)
        b.check_capacity("dispatch", self.most, rows.shape[1], k, sf is not None)
        self.rows, self.sf = rows, sf
        self.asked = {
            "hidden": rows.shape[1],
            "dtype": str(rows.dtype),
            "scales": None if sf is None else [str(sf.dtype), sf.shape[1]],
            "num_topk": k,
            "weights": self.topk_weights is not None,
            "num_experts": experts,
            "num_max_tokens_per_rank": self.most,
            "expert_alignment": self.alignment,
            "do_expand": self.do_expand,
            "handle of dispatch": None if h is None else h.number,
        }

    def main(self) -> None:
        """Everything that talks to peers."""
        import torch

        b = self.buffer
        assert self.topk_idx is not None and self.num_experts is not None and self.most is not None
        planes = [self.rows]
        if self.sf is not None:
            planes.append(self.sf.contiguous())
        w = None if self.topk_weights is None else self.topk_weights.contiguous()
        if self.handle is not None:
            if w is not None:
                planes.append(w)
            self.arrived = self.handle.path.forward(planes, "dispatch")
            self.path = self.handle.path
            return
        t = len(self.rows)
        first = b.rank * self.most
        src = torch.arange(first, first + t, dtype=torch.int32, device=self.rows.device)
        parts = [self.topk_idx.to(torch.int32)]
        if w is not None:
            parts.append(w.view(torch.int32))
        parts.append(src[:, None])
        self.path = Path(b.grid, self.topk_idx, self.num_experts, "dispatch")
        planes.append(torch.cat(parts, dim=1))
        if self._padded():
            self.arrived = self.path.open_padded(planes, b.order, self.most)
        else:
            self.arrived = self.path.open(planes, b.order)

    def _padded(self) -> bool:
        """Whether counts stay on the device. T rows travel from every rank to every rank, which fit
        the memory of a hop both ways where a token may reach every rank."""
        b = self.buffer
        assert self.topk_idx is not None
        whole = b.grid.whole
        able = whole.queued and (not whole.bounded or b.size <= self.topk_idx.shape[1])
        return not self._synced() and b.multiple and b.grid.rail is None and able

    def epilogue(self) -> tuple[Any, ...]:
        """Copies to their places; no peer takes part."""
        import torch

        if self.handle is not None:
            done, weights = self.handle.placement, None
            if self.topk_weights is not None:
                weights = self.arrived[-1]
            size = self._size(done)
            return self._outputs(done, weights, size, self.handle)
        b, meta = self.buffer, self.arrived[-1]
        assert self.topk_idx is not None and self.num_experts is not None
        assert self.alignment is not None and self.most is not None
        k, share = self.topk_idx.shape[1], self.num_experts // b.size
        chosen, src, last = meta[:, :k], meta[:, -1], self.path.hops[-1]
        counts, row, order = None, None, b.order
        if last.padded:
            real, row = compacted(self.path.senders, self.most)
            chosen = torch.where(real[:, None], chosen, -1)
            if b.deterministic and not b.order.natural:
                row = torch.where(real, src, torch.iinfo(torch.int32).max).argsort()
        else:
            counts = last.expert_counts
            # In natural order a direct dispatch is sorted as it arrives.
            if b.deterministic and not (b.order.natural and len(self.path.hops) == 1):
                row = src.argsort()
        done = place(
            chosen, src, b.rank * share, share, counts, self.alignment, self.do_expand, row,
            None if b.deterministic else order,
        )  # fmt: skip
        weights = None
        if self.topk_weights is not None:
            weights = meta[:, k : 2 * k].contiguous().view(torch.float32)
        if self.stats is not None:
            self.stats += done.counts.to(torch.int32)
        return self._outputs(done, weights, self._size(done), self._handle(done))

    def results(self, outputs: tuple[Any, ...], event: EventOverlap | None) -> tuple[Any, ...]:
        """What the caller gets; a deferred call returns no event of its own."""
        return outputs if event is None else (*outputs, event)

    def _size(self, done: Placement) -> int:
        if self._synced():
            return done.num_out
        assert self.most is not None
        return done.worst(self.buffer.size * self.most)

    def _synced(self) -> bool:
        if self.handle is not None:
            return self.handle.synced
        return self.do_cpu_sync is None or self.do_cpu_sync

    def _outputs(
        self, done: Placement, weights: torch.Tensor | None, size: int, handle: EPHandle
    ) -> tuple[Any, ...]:
        x: Any = done.x(self.arrived[0], size, self.buffer.grid.owned)
        if self.sf is not None:
            x = (x, done.sf(self.arrived[1], size, self.column_major))
        topk_idx = None
        if not self.do_expand:
            topk_idx = done.local
            if size > len(topk_idx):
                topk_idx = topk_idx.new_empty((size, topk_idx.shape[1]))
                topk_idx[: len(done.local)] = done.local
        recv_weights = None if weights is None else done.weights(weights, size)
        return x, topk_idx, recv_weights, handle

    def _handle(self, done: Placement) -> EPHandle:
        import torch

        b, last = self.buffer, self.path.hops[-1]
        assert self.most is not None and self.num_experts is not None
        assert self.alignment is not None and self.topk_idx is not None
        synced = self._synced()
        if done.sizes is None:
            # The host knows nothing, and must not wait.
            raised = done.starts + done.counts
            if not self.do_expand:
                raised = (raised + self.alignment - 1) // self.alignment * self.alignment
            per_rank = self.path.senders.cumsum(0)
            parts = [t.to(torch.int32) for t in (per_rank, raised, done.counts)]
        else:
            parts = _on_device(done, last, self.do_expand)
        return EPHandle(
            do_expand=self.do_expand,
            num_experts=self.num_experts,
            expert_alignment=self.alignment,
            num_max_tokens_per_rank=self.most,
            num_sms=self.num_sms,
            number=self.number,
            synced=synced,
            num_recv_tokens=done.num_rows if synced else b.size * self.most,
            num_expanded_tokens=self._size(done) if self.do_expand else 0,
            num_recv_tokens_per_expert_list=(done.sizes or []) if synced else [],
            psum_num_recv_tokens_per_scaleup_rank=parts[0],
            psum_num_recv_tokens_per_expert=parts[1],
            num_unaligned_recv_tokens_per_expert=parts[2],
            buffer_id=b.id,
            path=self.path,
            placement=done,
            routing=self.topk_idx,
            version=version_of(self.topk_idx),
        )


def _on_device(done: Placement, last: Hop, do_expand: bool) -> list[torch.Tensor]:
    """int32 sums over ranks, sums over experts, and counts of experts, in one copy."""
    import torch

    sizes, per_expert = np.array(done.sizes, np.int64), last.expert_counts
    psum = sizes.cumsum() - sizes + per_expert if do_expand else sizes.cumsum()
    # The last hop is the one over scale-up peers, in direct mode as in hybrid mode.
    per_rank = last.counts[:, last.transport.rank].cumsum()
    known = np.concatenate([per_rank, psum, per_expert]).astype(np.int32)
    on_device = torch.from_numpy(known).to(done.local.device)
    return list(on_device.split([len(per_rank), len(psum), len(per_expert)]))

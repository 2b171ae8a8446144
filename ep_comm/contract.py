"""The contract of dispatch and combine as a program: what a backend must do, bit by bit.

Every rank draws the inputs of all ranks from one seed, computes the reference by itself, and holds
what its buffer gives against it. ``check`` returns sentences; an empty list is a pass. It runs on
any backend, in tests as on a machine with several accelerators.

Source: the test matrix of DeepEP 2.5.0, in our own words and with more routings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ep_comm.buffer import EPBuffer
from ep_comm.event import EventOverlap
from ep_comm.handle import EPHandle
from ep_comm.spec import Spec, bias_of, draw, expert_output, matrix

if TYPE_CHECKING:
    import torch

    from ep_comm.reference import Received, Sent, Setting

__all__ = ["Spec", "check", "draw", "matrix"]


def check(group: Any, spec: Spec, device: str = "cpu") -> list[str]:
    """Faults of a case on this rank."""
    near = group.scaleup_ranks if spec.hybrid else group.size
    buffer = EPBuffer(
        group, None, max(spec.tokens, *spec.counts, 1), spec.hidden, spec.num_topk,
        deterministic=spec.deterministic, allow_hybrid_mode=spec.hybrid,
        allow_multiple_reduction=spec.multiple, explicitly_destroy=True,
        num_cpu_timeout_secs=60, arrival_seed=spec.arrival_seed,
    )  # fmt: skip
    sent = draw(spec, group.size)
    faults = []
    for expand in (False, True):
        faults += _Round(buffer, spec, sent, expand, near, device).faults()
    # Not after an error: what the ranks then disagree on would hide it.
    buffer.destroy()
    return faults


class _Round:
    """Dispatch, cached dispatch and combine in one layout."""

    def __init__(
        self,
        buffer: EPBuffer,
        spec: Spec,
        sent: Sequence[Sent],
        expand: bool,
        near: int,
        device: str,
    ) -> None:
        from ep_comm import reference

        self.buffer, self.spec, self.expand, self.device = buffer, spec, expand, device
        self.sent, self.rank = sent, buffer.rank
        self.setting: Setting = reference.Setting(
            spec.num_experts, buffer.num_max_tokens_per_rank, spec.alignment, expand, expand,
            spec.multiple, near,
        )  # fmt: skip
        self.all = reference.dispatch(sent, self.setting)
        self.want: Received = self.all[self.rank]
        self.found: list[str] = []

    def faults(self) -> list[str]:
        """Run all of it."""
        first = self._dispatch(None)
        self._judge(first)
        self._judge_handle(first[3])
        again = self._dispatch(first[3])
        self._same(first, again)
        self._combine(first)
        return self.found

    def _dispatch(self, handle: EPHandle | None) -> tuple[Any, ...]:
        import torch

        s, mine = self.spec, self.sent[self.rank]
        x = mine.x.to(self.device)
        sf = None if mine.sf is None else mine.sf.to(self.device)
        own = mine.topk_idx.to(self.device, copy=True)
        given = own.clone() if s.clone else own
        share = s.num_experts // self.buffer.size
        stats = torch.ones(share, dtype=torch.int32, device=self.device)
        weights = None if mine.topk_weights is None else mine.topk_weights.to(self.device)
        new = handle is None
        got = self.buffer.dispatch(
            x if sf is None else (x, sf), given if new else None, weights,
            cumulative_local_expert_recv_stats=stats if new else None,
            num_experts=s.num_experts if new else None,
            expert_alignment=s.alignment if new else None, handle=handle,
            do_cpu_sync=s.cpu_sync if new else None,
            do_expand=self.expand, do_zero_padding=self.expand,
            use_tma_aligned_col_major_sf=self.expand, **self._overlap(),
        )  # fmt: skip
        if s.deferred:
            got = (*got.current_stream_wait(), EventOverlap())
        got[4].current_stream_wait()
        if s.clone and new:
            own.fill_(-7)
        if new:
            counted = stats.cpu() - 1
            self._equal("stats", counted, self.want.num_recv_tokens_per_expert.int())
        return tuple(got)

    def _overlap(self) -> dict[str, Any]:
        s = self.spec
        return {
            "previous_event": self.buffer.capture() if s.previous_event else None,
            "async_with_compute_stream": s.asynchronous or s.deferred,
            "allocate_on_comm_stream": s.on_comm_stream,
            "defer_epilogue": s.deferred,
        }

    def _order(self, handle: EPHandle) -> torch.Tensor:
        """Our row behind every row of the reference."""
        return self._metadata(handle)[:, 0].argsort()

    @staticmethod
    def _metadata(handle: EPHandle) -> torch.Tensor:
        """Of the rows that are no padding."""
        rows = int(handle.psum_num_recv_tokens_per_scaleup_rank[-1])
        return handle.recv_src_metadata[:rows].cpu()

    def _judge(self, got: tuple[Any, ...]) -> None:
        x, topk_idx, weights, handle, _ = got
        x, sf = x if self.spec.fp8 else (x, None)
        w, real = self.want, handle.num_real_rows
        if self.spec.cpu_sync and len(x) != real:
            self.found.append(f"recv_x: got {len(x)} rows, wanted {real}")
        if real != len(w.x):
            self.found.append(f"recv_x: got {real} rows, wanted {len(w.x)}")
            return
        order = self._order(handle)
        if self.expand:
            order = self._expanded_order(handle, order)
        else:
            self._equal("recv_topk_idx", topk_idx.cpu()[:real][order], w.topk_idx)
        self._equal("recv_x", _pick(x, order, real), w.x)
        if sf is not None and w.sf is not None:
            self._equal("recv_sf", _pick(sf, order, real), w.sf)
        if w.topk_weights is not None:
            self._equal("recv_topk_weights", weights.cpu()[:real][order], w.topk_weights)

    def _expanded_order(self, handle: EPHandle, order: torch.Tensor) -> torch.Tensor:
        """The same for expanded rows; gaps stay where they are."""
        import torch

        ours = self._metadata(handle)[order, 2:].long()
        theirs = self.want.expanded_row.long()
        if not torch.equal(ours >= 0, theirs >= 0):
            self.found.append("expanded rows: got other choices than wanted")
            return torch.arange(len(self.want.x))
        out = torch.arange(len(self.want.x))
        out[theirs[theirs >= 0]] = ours[ours >= 0]
        return out

    def _judge_handle(self, h: EPHandle) -> None:
        w, a = self.want, self.spec.alignment
        order = self._order(h)
        self._equal("src_token_global_idx", self._metadata(h)[order, 0],
                    w.src_token_global_idx)  # fmt: skip
        self._equal("psum per rank", h.psum_num_recv_tokens_per_scaleup_rank.cpu(),
                    w.psum_per_scaleup_rank)  # fmt: skip
        self._equal("psum per expert", h.psum_num_recv_tokens_per_expert.cpu(), w.psum_per_expert)
        aligned = [-(-int(c) // a) * a for c in w.num_recv_tokens_per_expert]
        if h.num_recv_tokens_per_expert_list != (aligned if self.spec.cpu_sync else []):
            self.found.append("num_recv_tokens_per_expert_list: not the aligned counts")
        if self.spec.deterministic and not bool((order.diff() == 1).all()):
            self.found.append("deterministic: rows are not sorted by source")

    def _same(self, first: tuple[Any, ...], again: tuple[Any, ...]) -> None:
        real = first[3].num_real_rows
        pairs = zip(_flat(first[:3]), _flat(again[:3]), strict=True)
        for i, (a, b) in enumerate(pairs):
            self._equal(f"cached dispatch, output {i}", b[:real].cpu(), a[:real].cpu())

    def _combine(self, got: tuple[Any, ...]) -> None:
        from ep_comm import reference

        s, h = self.spec, got[3]
        ys = [expert_output(s, r, w.x.shape[0], s.hidden) for r, w in enumerate(self.all)]
        bias = [bias_of(s, r, len(m.x)) for r, m in enumerate(self.sent)]
        carried = not (self.expand and not s.multiple)
        weights = [w.topk_weights for w in self.all] if carried else None
        want_x, want_w = reference.combine(
            ys, self.all, self.sent, self.setting, bias=bias, weights=weights, only=self.rank
        )[0]
        order = self._order(h)
        if self.expand:
            order = self._expanded_order(h, order)
        y = ys[self.rank].clone()
        y[order] = ys[self.rank]
        mine = None
        if carried and got[2] is not None:
            mine = got[2][: h.num_real_rows].contiguous()
        given = tuple(b.to(self.device) for b in bias[self.rank])
        back = self.buffer.combine(
            y.to(self.device), h, mine, bias=given or None, **self._overlap()
        )
        if s.deferred:
            back = (*back.current_stream_wait(), EventOverlap())
        back[2].current_stream_wait()
        self._equal("combined_x", back[0].cpu(), want_x)
        if carried:
            self._equal("combined_topk_weights", back[1].cpu(), want_w)
            self._equal("weights after a round trip", back[1].cpu(),
                        self.sent[self.rank].topk_weights)  # fmt: skip

    def _equal(self, what: str, got: torch.Tensor, want: Any) -> None:
        from ascendkit.testing import bitwise

        verdict = bitwise(got, want, what)
        if not verdict:
            layout = "expanded" if self.expand else "plain"
            self.found.append(f"rank {self.rank}, {layout}: {verdict.message}")


def _pick(t: torch.Tensor, order: torch.Tensor, real: int) -> torch.Tensor:
    """Rows in another order, contiguous, on the CPU; float8 by its bits."""
    import torch

    rows = t[:real].cpu().contiguous()
    if rows.element_size() == 1:
        return rows.view(torch.uint8)[order].view(t.dtype)
    return rows[order].contiguous()


def _flat(outputs: Sequence[Any]) -> list[torch.Tensor]:
    return [t for o in outputs if o is not None for t in (o if isinstance(o, tuple) else (o,))]

"""``python -m ep_comm model``: published, model and error side by side, and what follows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ascendkit import cli
from ascendkit.errors import bad_value, unknown
from ep_comm.checks import nearest_divisor
from ep_comm.commands import given, show
from ep_comm.commands.page import page, unit, value
from ep_comm.model.fit import constants, key_of
from ep_comm.model.measured import fit, load
from ep_comm.model.predict import Prediction, held, predict
from ep_comm.model.published import machines, points
from ep_comm.model.savings import carrier, fp8_saving
from ep_comm.model.skew import skew
from ep_comm.model.volume import PARTS

T = TypeVar("T")


def main(c: dict[str, Any]) -> int:
    """One of the tables."""
    if c["output"] == "html" and c["action"] != "table":
        raise bad_value("output", "html", f"table or json beside action={c['action']}", "json")
    if c["file"] and c["output"] != "html":
        raise bad_value("file", c["file"], "none unless output=html")
    if c["action"] == "measured":
        return _measured(c)
    if c["machine"] != "all" and c["machine"] not in machines():
        raise unknown("machine", c["machine"], (*machines(), "all"))
    chosen = machines() if c["machine"] == "all" else (c["machine"],)
    given.numbers(c)
    return {"table": _table, "predict": _predict, "fp8": _fp8, "carrier": _carrier}[c["action"]](
        c, chosen
    )


def _served(c: dict[str, Any], chosen: tuple[str, ...], work: Callable[[str], T]) -> list[T]:
    """``work`` on every machine; of all machines, those that cannot are named on stderr."""
    found = []
    for machine in chosen:
        try:
            found.append(work(machine))
        except ValueError as e:
            # The last reason, where none is left.
            if machine == chosen[-1] and not found:
                raise
            cli.console(stderr=True).print(f"left out: {machine}: {e}", soft_wrap=True)
    return found


def _table(c: dict[str, Any], chosen: tuple[str, ...]) -> int:
    found = [held(p) for p in points() if p.machine in chosen]
    if c["output"] == "html":
        command = f"python -m ep_comm model machine={c['machine']} output=html"
        cli.write(c["file"], page(found, _origins(chosen), command))
        return 0
    if c["output"] == "json":
        show.lines(
            {"record": "ep_comm_model", "machine": h.point.machine, "part": h.point.part,
             "ranks": h.point.ranks, "unit": unit(h), "published": value(h),
             "model": h.predicted, "error": h.error, "left_out_error": h.left_out,
             "note": h.point.note}
            for h in found
        )  # fmt: skip
        return 0
    show.table(
        "published against model (logical GB/s; us for low-latency rows)",
        ("machine", "part", "EP", "published", "model", "error", "left out", "unit", "note"),
        [(h.point.machine, h.point.part, h.point.ranks, f"{value(h):.1f}", f"{h.predicted:.1f}",
          f"{h.error:+.1%}", "-" if h.left_out is None else f"{h.left_out:+.1%}", unit(h),
          h.point.note) for h in found],
    )  # fmt: skip
    out = cli.console()
    out.print("left out: error of a point predicted by constants fitted without it.")
    for origin in _origins(chosen):
        out.print(origin)
    return 0


def _origins(chosen: tuple[str, ...]) -> list[str]:
    """Constants of each machine and part, and where they come from."""
    found = []
    for machine in chosen:
        for key in dict.fromkeys(key_of(machine, part) for part in PARTS):
            k = constants(machine, key[1] or "dispatch")
            values = ", ".join(
                f"{n} {getattr(k, n):.4g}"
                for n in ("scaleup_gbs", "scaleout_gbs", "peer_us", "start_us", "sum_gbs")
                if getattr(k, n) not in (0.0, float("inf"))
            )
            found.append(f"{' '.join(filter(None, key))}: {values}\n  {'; '.join(k.origin)}")
    return found


def _predict(c: dict[str, Any], chosen: tuple[str, ...]) -> int:
    if c["experts"] % c["ranks"]:
        raise bad_value("ranks", c["ranks"], f"a divisor of experts {c['experts']}",
                        nearest_divisor(c["ranks"], c["experts"]))  # fmt: skip
    s = None
    if c["gate"] != "uniform":
        s = skew(c["gate"], c["experts"], c["topk"], c["ranks"], seed=c["seed"])

    def both(machine: str) -> list[tuple[str, str, Prediction, Any]]:
        return [
            (machine, part, predict(
                machine, part, c["ranks"], num_tokens=c["tokens"], hidden=c["hidden"],
                num_experts=c["experts"], num_topk=c["topk"],
                skew=1.0 if s is None else s.received,
            ), s)
            for part in PARTS
        ]  # fmt: skip

    rows = [row for parts in _served(c, chosen, both) for row in parts]
    if c["output"] == "json":
        show.lines(
            {"record": "ep_comm_predicted", "machine": m, "part": part, "ranks": c["ranks"],
             "us": p.us, "bound": p.bound, "wire_gbs": p.wire_gbs, "logical_gbs": p.logical_gbs,
             "copies": p.volume.copies, "skew": s.received if s else 1.0,
             "seed": s.seed if s else None}
            for m, part, p, s in rows
        )  # fmt: skip
        return 0
    show.table(
        f"model: EP{c['ranks']}, {c['tokens']} tokens a rank x {c['hidden']}, "
        f"top-{c['topk']} of {c['experts']}, gate {c['gate']}",
        ("machine", "part", "us", "bound", "wire GB/s", "logical GB/s", "copies", "skew", "seed"),
        [(m, part, f"{p.us:.1f}", p.bound, f"{p.wire_gbs:.1f}", f"{p.logical_gbs:.1f}",
          f"{p.volume.copies:.3f}", f"{s.received:.2f}" if s else "1.00", s.seed if s else "-")
         for m, part, p, s in rows],
    )  # fmt: skip
    return 0


def _fp8(c: dict[str, Any], chosen: tuple[str, ...]) -> int:
    found = _served(c, chosen, lambda m: (m, fp8_saving(m, c["ranks"], c["fused_cast"])))
    if c["output"] == "json":
        show.lines({"record": "ep_comm_fp8", "machine": m, "ranks": c["ranks"], **s.__dict__}
                   for m, s in found)  # fmt: skip
        return 0
    show.table(
        f"model: what FP8 dispatch saves on the published shapes, EP{c['ranks']} (us)",
        ("machine", "bf16", "fp8", "epilogue saves", "cast costs", "saved", "of the whole step"),
        [(m, f"{s.bf16_us:.0f}", f"{s.fp8_us:.0f}", f"{s.epilogue_us:.0f}", f"{s.cast_us:.0f}",
          f"{s.saved_us:.0f}", f"{s.saved_us / s.step_us:.1%}") for m, s in found],
    )  # fmt: skip
    cli.console().print(
        "whole step: bf16 dispatch, its copy epilogue, combine. Epilogue and cast at the memory's "
        "peak rate."
    )
    return 0


def _carrier(c: dict[str, Any], chosen: tuple[str, ...]) -> int:
    sizes = (512, 4096, 14336, 65536, 1 << 20, 16 << 20)
    found = [carrier(size, cores) for cores in c["cores"] for size in sizes]
    if c["output"] == "json":
        show.lines(
            {"record": "ep_comm_carrier", "cores": f.cores, "bytes": f.num_bytes,
             "ubmem_us": f.ubmem_us, "urma_us": f.urma_us, "choice": f.choice} for f in found
        )  # fmt: skip
        return 0
    show.table(
        "model: UBMEM stores by vector cores against URMA, 950DT, one message to one peer",
        ("cores", "bytes", "UBMEM us", "URMA us", "faster", "URMA from (bytes)"),
        [(f.cores, f"{f.num_bytes:,.0f}", f"{f.ubmem_us:.2f}", f"{f.urma_us:.2f}", f.choice,
          f"{f.break_even_bytes:,.0f}" if f.break_even_bytes != float("inf") else "never")
         for f in found],
    )  # fmt: skip
    cli.console().print(
        "URMA: fitted cost of a peer and fitted rate. UBMEM: 95 GB/s a core (published), no start "
        "cost, at most the stated link rate; the stated link rate is unverified."
    )
    return 0


def _measured(c: dict[str, Any]) -> int:
    if not c["record"]:
        raise bad_value("record", None, "a file of ep_comm multi, as results/ep_comm_multi_*.jsonl")
    found = fit(load(Path(c["record"])))
    if c["output"] == "json":
        show.lines({"record": "ep_comm_measured", "what": p.what, "path": p.path, "us": p.us,
                    "shape": p.shape, "model_us": p.model_us, "fitted": p.fitted,
                    "error": p.error} for p in found.calls)  # fmt: skip
        return 0
    show.table(
        "measured in a row against model (us)",
        ("what", "path", "tokens", "hidden", "k", "fp8", "measured", "model", "error", ""),
        [(p.what, p.path, p.shape["tokens"], p.shape["hidden"], p.shape["num_topk"],
          p.shape["fp8"], f"{p.us:.1f}", f"{p.model_us:.1f}", f"{p.error:+.1%}",
          "fitted" if p.fitted else "predicted") for p in found.calls],
    )  # fmt: skip
    out = cli.console()
    out.print(
        f"link: {found.wire_gbs:.1f} GB/s on the wire, start {found.start_us:.1f} us, from "
        f"all_to_all_single at the fewest tokens; memory: {found.copy_gbs:.0f} GB/s, the run's copy"
    )
    for what, path in dict.fromkeys((p.what, p.path) for p in found.calls):
        errors = sorted(
            abs(p.error) for p in found.calls if (p.what, p.path) == (what, path) and not p.fitted
        )
        if errors:
            out.print(f"{what}, {path}: predicted with a median error of "
                      f"{errors[len(errors) // 2]:.1%}, worst {errors[-1]:.1%}")  # fmt: skip
    return 0

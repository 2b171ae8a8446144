"""Whole-step points of DeepSeek-V3/R1 decode workers from aiconfigurator's sample of measured runs.

Chosen by rule, not by hand: FP8, disaggregated, decode batch and layout stated, attention either
data or tensor parallel over the same ranks as the experts; for every system, server and layout the
smallest, the middle and the largest batch at 1024/1024 and 8192/1024, at most six a system.

    python results/budget_curves/extract_points.py CLONE    # points of validation_points.yaml
"""

import io
import subprocess
import sys

import pandas as pd

FILE = "aic-core/src/aiconfigurator_core/systems/silicon_sample.csv"
SYSTEMS = {"h100_sxm": "h100", "h200_sxm": "h200", "b200_sxm": "b200", "gb200": "gb200",
           "b300_sxm": "b300", "gb300": "gb300"}  # fmt: skip


def main(clone):
    got = subprocess.run(["git", "-C", clone, "show", f"095f58a:{FILE}"], capture_output=True)
    d = pd.read_csv(io.BytesIO(got.stdout))
    d = d[d.model_path.str.startswith("deepseek-ai/DeepSeek-") & (d.precision == "fp8")
          & (d["mode"] == "disagg") & d.id.str.contains("_cfg") & d.decode_batch_size.notna()
          & d.silicon_tpot_ms.notna() & (d.osl == 1024)]  # fmt: skip
    tp, dp, ep = d.decode_tp_size, d.decode_attention_dp_size, d.decode_moe_ep_size
    d = d[((dp == ep) & (tp == 1)) | ((tp == ep) & (dp == 1) & (ep > 1))]
    for system, device in SYSTEMS.items():
        chosen = []
        q = d[d.system == system].sort_values("id")
        keys = ["backend", "decode_tp_size", "decode_attention_dp_size", "isl"]
        for _, group in q.groupby(keys):
            by_batch = group.sort_values(["decode_batch_size", "id"])
            for at in (0, len(by_batch) // 2, len(by_batch) - 1):
                chosen.append(by_batch.iloc[at])
        seen = {r.id: r for r in chosen}
        step = max(len(seen) // 6, 1)
        for r in sorted(seen.values(), key=lambda r: r.id)[::step][:6]:
            print(point(r, device))


def point(r, device):
    tp, dp, ep = (int(r[f"decode_{n}_size"]) for n in ("tp", "attention_dp", "moe_ep"))
    return (
        f"- {{id: n3_{r.id.removeprefix('dsr1_')}, role: validation, platform: {device}, model: r1,"
        f" phase: decode,\n   config: {{framework: {r.backend}, dtype: fp8, decode_tp: {tp},"
        f" decode_attention_dp: {dp}, decode_ep: {ep}, bs_per_rank: {int(r.decode_batch_size)},"
        f" isl: {int(r.isl)}, osl: {int(r.osl)}, disagg: true, source: aic_refs}},\n"
        f"   metrics: {{tpot_ms: {{value: {r.silicon_tpot_ms:.3f}, unit: ms, source: aic_refs}}}}}}"
    )


if __name__ == "__main__":
    main(sys.argv[1])

"""Rows of NVIDIA kernels from aiconfigurator's measured tables (Apache-2.0), a file a device.

Needs pandas, pyarrow and a clone of github ai-dynamo/aiconfigurator at the commit the hardware
table names; figures only are taken, one point in a few of its grid:

    python results/budget_curves/extract_nvidia.py CLONE configs/data/kernels
"""

import io
import subprocess
import sys
from pathlib import Path

import pandas as pd

COMMIT = "095f58a"
DATA = "aic-core/src/aiconfigurator_core/systems/data"
SYSTEMS = {
    "h100": "h100_sxm",
    "h200": "h200_sxm",
    "b200": "b200_sxm",
    "gb200": "gb200",
    "b300": "b300_sxm",
    "gb300": "gb300",
}
M = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
SHAPES = [(2048, 7168), (16384, 1536), (7168, 16384), (4096, 7168), (7168, 2048), (1536, 4096),
          (16384, 1024), (4096, 8192), (8192, 4096), (4096, 2048), (256, 7168), (6144, 1536),
          (51200, 7168), (1024, 4096)]  # fmt: skip
FORMATS = {
    "fp8_block": ("fp8_1x128", "fp8_128x128"),
    "bfloat16": ("bf16", "bf16"),
    "nvfp4": ("mxfp4", "mxfp4"),
}


def main(clone, folder):
    kinds = (gemm, moe, wide_moe, mla, bmm, mhc, select, deep_ep, reduce_all)
    for device, system in SYSTEMS.items():
        lines = [line for rows in kinds for line in rows(clone, device, system)]
        Path(folder, f"{device}.tables.yaml").write_text("\n".join([HEADER, *lines]) + "\n")


def read(clone, system, path):
    got = subprocess.run(
        ["git", "-C", clone, "show", f"{COMMIT}:{DATA}/{system}/{path}"], capture_output=True
    )
    return pd.read_parquet(io.BytesIO(got.stdout)) if got.returncode == 0 else None


def series(id, device, source, calls, at, us, **extra):
    """One line: calls, the swept parameters, and microseconds of all calls together."""
    if not us:
        return
    at = {k: [int(v) if float(v).is_integer() else round(v, 4) for v in vs] for k, vs in at.items()}
    more = "".join(f", {k}: {v}" for k, v in extra.items())
    parts = ", ".join(f"{{op: {op}, n: {n}, params: {flow(p)}}}" for op, n, p in calls)
    yield (
        f"- {{id: {device}_{id}, device: {device}, source: {source}{more}, calls: [{parts}],"
        f" at: {flow(at)}, us: {flow([round(u, 3) for u in us])}}}"
    )


def flow(v):
    if isinstance(v, dict):
        return "{" + ", ".join(f"{k}: {flow(x)}" for k, x in v.items()) + "}"
    if isinstance(v, list):
        return "[" + ", ".join(map(flow, v)) + "]"
    return str(v)


def gemm(clone, device, system):
    d = read(clone, system, "gemm/sglang/0.5.14/gemm_perf.parquet")
    for dtype, (a, b) in FORMATS.items():
        for n, k in SHAPES:
            q = d[(d.gemm_dtype == dtype) & (d.n == n) & (d.k == k) & d.m.isin(M)]
            q = q.groupby("m").latency.median()
            call = dict(m="$m", n=n, k=k, a=a, b=b)
            yield from series(
                f"gemm_{dtype}_{n}x{k}", device, "aic_gemm", [("gemm_mad.gemm", 1, call)],
                {"m": list(q.index)}, list(q * 1e3),
            )  # fmt: skip


def ffn(rows, hidden, inter, experts, a, b):
    up = dict(rows=rows, n=2 * inter, k=hidden, experts=experts, touched="$touched", a=a, b=b)
    down = dict(up, n=hidden, k=inter)
    act = dict(num_tokens=rows, hidden=inter, out=a)
    return [("gemm_mad.grouped", 1, up), ("tilekernels.swiglu", 1, act),
            ("gemm_mad.grouped", 1, down)]  # fmt: skip


def moe(clone, device, system):
    d = read(clone, system, "moe/trtllm/1.3.0rc20/moe_perf.parquet")
    if d is None:
        return
    for hidden, inter, k, e in ((7168, 2048, 8, 256), (4096, 2048, 6, 256), (7168, 3072, 6, 384)):
        for dtype, (a, b) in FORMATS.items():
            for ep in (1, 8, 32):
                q = d[(d.hidden_size == hidden) & (d.inter_size == inter) & (d.num_experts == e)
                      & (d.topk == k) & (d.moe_dtype == dtype) & (d.moe_tp_size == 1)
                      & (d.moe_ep_size == ep) & (d.distribution == "balanced")]  # fmt: skip
                q = q.groupby("num_tokens").latency.min()
                keep = [n for n in q.index if n in (1, 4, 16, 64, 256, 1024, 4096, 16384)]
                rows = [n * k / ep for n in keep]
                touched = [min(r, e // ep) for r in rows]
                yield from series(
                    f"moe_{dtype}_{hidden}x{inter}_ep{ep}", device, "aic_moe",
                    ffn("$rows", hidden, inter, e // ep, a, b),
                    {"rows": rows, "touched": touched}, [q[n] * 1e3 for n in keep],
                )  # fmt: skip


def wide_moe(clone, device, system):
    for mode, keep in (("context", 1), ("generation", 0)):
        d = read(clone, system, f"moe/sglang/0.5.10/wideep_{mode}_moe_perf.parquet")
        if d is None:
            continue
        for ep in (8, 32, 64, 128):
            q = d[(d.moe_ep_size == ep) & (d.distribution == "uniform")]
            q = q.groupby("num_tokens").latency.median()
            rows = [n * 8 / ep for n in q.index]
            touched = [min(r, 256 // ep) for r in rows]
            yield from series(
                f"wide_moe_{mode}_ep{ep}", device, "aic_wide_moe",
                ffn("$rows", 7168, 2048, 256 // ep, "fp8_1x128", "fp8_128x128"),
                {"rows": rows, "touched": touched}, list(q * 1e3),
                phase="prefill train" if keep else "decode",
            )  # fmt: skip


def mla(clone, device, system):
    d = read(clone, system, "mla/sglang/0.5.14/generation_mla_perf.parquet")
    if d is not None:
        d = d[(d.kv_cache_dtype == "bfloat16")]
        for heads in (16, 128):
            for batch in (1, 16, 64, 256):
                q = d[(d.num_heads == heads) & (d.batch_size == batch) & (d.step > 500)]
                q = q.groupby("step").latency.median()
                q = q[[s for s in q.index if s <= 131072]]
                kv = [s + 1 for s in q.index]
                call = dict(num_tokens=batch, num_heads=heads, qk_dim=576, v_dim=512,
                            kv_len="$kv", kv_entries="$entries", entry_bytes=1152)  # fmt: skip
                yield from series(
                    f"mla_decode_h{heads}_b{batch}", device, "aic_mla",
                    [("sparse_attn.mla", 1, call)],
                    {"kv": kv, "entries": [batch * v for v in kv]}, list(q * 1e3), phase="decode",
                )  # fmt: skip
    d = read(clone, system, "mla/sglang/0.5.14/context_mla_perf.parquet")
    if d is None:
        return
    d = d[(d.kv_cache_dtype == "bfloat16")]
    for heads in (16, 128):
        q = d[(d.num_heads == heads) & (d.batch_size == 1) & (d.isl >= 256)]
        q = q.groupby("isl").latency.median()
        q = q[[s for s in q.index if s & (s - 1) == 0]]
        call = dict(num_tokens="$t", num_heads=heads, qk_dim=192, v_dim=128, kv_len="$mean",
                    kv_entries="$t", entry_bytes=heads * 320 * 2)  # fmt: skip
        yield from series(
            f"mla_prefill_h{heads}", device, "aic_mla", [("sparse_attn.mla", 1, call)],
            {"t": list(q.index), "mean": [(s + 1) / 2 for s in q.index]}, list(q * 1e3),
            phase="prefill",
        )  # fmt: skip


def bmm(clone, device, system):
    d = read(clone, system, "mla_bmm/sglang/0.5.14/mla_bmm_perf.parquet")
    for name, n, k in (("mla_gen_pre", 512, 128), ("mla_gen_post", 128, 512)):
        for heads in (16, 128):
            q = d[(d.op_name == name) & (d.bmm_dtype == "bfloat16") & (d.num_heads == heads)]
            q = q[q.num_tokens.isin(M)].groupby("num_tokens").latency.median()
            call = dict(m="$m", n=n, k=k, batch=heads, a="bf16", b="bf16")
            yield from series(
                f"{name}_h{heads}", device, "aic_bmm", [("gemm_mad.gemm", 1, call)],
                {"m": list(q.index)}, list(q * 1e3),
            )  # fmt: skip


def mhc(clone, device, system):
    d = read(clone, system, "mhc/sglang/0.5.14/mhc_module_perf.parquet")
    for op in ("pre", "post"):
        for hidden in (4096, 7168):
            q = d[(d.op_name == op) & (d.hidden_size == hidden)].groupby("num_tokens").latency
            q = q.median()
            q = q[[t for t in q.index if t & (t - 1) == 0 and t <= 65536]]
            call = dict(num_tokens="$t", hidden=hidden, streams=4)
            yield from series(
                f"mhc_{op}_{hidden}", device, "aic_mhc", [(f"tilekernels.mhc.{op}", 2, call)],
                {"t": list(q.index)}, list(q * 1e3),
            )  # fmt: skip


def select(clone, device, system):
    root = "sparse_attention/sglang/0.5.14"
    d = read(clone, system, f"{root}/dsv4_paged_mqa_logits_module_perf.parquet")
    if d is not None:
        d = d[d.isl == 1]
        for batch in (1, 16, 64, 256):
            q = d[(d.batch_size == batch) & (d.step >= 4096)].groupby("step").latency.median()
            q = q[[s for s in q.index if s & (s - 1) == 0]]
            keys = [s / 4 for s in q.index]
            call = dict(num_tokens=batch, num_heads=64, head_dim=128, keys="$keys",
                        key_entries="$entries", key_bytes=132, dtype="fp8")  # fmt: skip
            yield from series(
                f"indexer_b{batch}", device, "aic_index", [("sparse_attn.indexer", 1, call)],
                {"keys": keys, "entries": [batch * v for v in keys]}, list(q * 1e3),
                phase="decode",
            )  # fmt: skip
    d = read(clone, system, f"{root}/dsv4_csa_topk_calib_perf.parquet")
    if d is None:
        return
    d = d[(d.isl == 1) & (d.num_heads == 64) & (d.score_mode == "v1_flat") & (d.latency > 0)]
    for batch in (1, 16, 64, 256):
        q = d[(d.batch_size == batch) & (d.step >= 8192)].groupby("step").latency.median()
        q = q[[s for s in q.index if s & (s - 1) == 0]]
        call = dict(rows=batch, row_len="$len", num_topk=512, value_bytes=4)
        yield from series(
            f"topk_b{batch}", device, "aic_topk", [("topk.radix_select", 1, call)],
            {"len": [s / 4 for s in q.index]}, list(q * 1e3),
        )  # fmt: skip


def deep_ep(clone, device, system):
    wire = dict(num_tokens="$t", hidden=7168, num_experts=256, num_topk=8, ep=8, scaleup_ranks=8)
    for mode, phase in (("ll", "decode"), ("normal", "prefill train")):
        d = read(clone, system, f"comm/sglang/0.5.12/wideep_deepep_{mode}_perf.parquet")
        if d is None:
            continue
        d = d[(d.hidden_size == 7168) & (d.num_topk == 8) & (d.num_experts == 256)]
        d = d[d.node_num == 1]
        for way, dtype in (("dispatch", "fp8_1x128"), ("combine", "bf16")):
            column = f"{way}_avg_t_us" if mode == "ll" else f"{way}_transmit_us"
            q = d[(d.dispatch_sms == 24) & (d.combine_sms == 24)] if mode == "normal" else d
            q = q.groupby("num_token")[column].median()
            q = q[[t for t in q.index if t & (t - 1) == 0]]
            yield from series(
                f"{way}_{mode}_ep8", device, "aic_deepep",
                [(f"ep_comm.{way}", 1, dict(wire, dtype=dtype))],
                {"t": list(q.index)}, list(q), phase=phase,
            )  # fmt: skip


def reduce_all(clone, device, system):
    d = read(clone, system, "comm/sglang/0.5.14/custom_allreduce_perf.parquet")
    if d is not None:
        top = d.num_gpus.max()
        q = d[(d.num_gpus == top) & (d.backend == "sglang_graph")].groupby("message_size")
        q = q.latency.median()
        q = q[[s for s in q.index if s >= 4096]].iloc[::2]
        # Sizes are bytes of the bf16 tensor.
        call = dict(num_values="$v", ranks=int(top), scaleup_ranks=int(top))
        yield from series(
            f"all_reduce_{top}", device, "aic_reduce", [("ep_comm.all_reduce", 1, call)],
            {"v": [s / 2 for s in q.index]}, list(q * 1e3),
        )  # fmt: skip
    d = read(clone, system, "comm/nccl/2.29.2/nccl_perf.parquet")
    if d is None:
        return
    for name in ("all_gather", "reduce_scatter"):
        top = d[d.op_name == name].num_gpus.max()
        q = d[(d.op_name == name) & (d.nccl_dtype == "half") & (d.num_gpus == top)]
        q = q.groupby("message_size").latency.median()
        q = q[[s for s in q.index if s >= 65536]].iloc[::2]
        call = dict(num_values="$v", ranks=int(top), scaleup_ranks=int(top))
        yield from series(
            f"{name}_{top}", device, "aic_nccl", [(f"ep_comm.{name}", 1, call)],
            {"v": [s / 2 for s in q.index]}, list(q * 1e3),
        )  # fmt: skip


HEADER = """\
# Kernel times from aiconfigurator's measured tables; a line is one series.
# Written by results/budget_curves/extract_nvidia.py; every time is in microseconds for all `calls`.
# Its tables are taken inside CUDA graphs, so the floor of a graph node is in every figure.
schema: ascendkit.kernels.v1
floor_us: 0.99
floor_source: graph_node
sources:
  graph_node: {ref: 'smallest kernel in a CUDA graph, 0.99 us a node, measured on H200 2026-11-29', kind: transferred from H200}
  aic_gemm: {ref: 'github ai-dynamo/aiconfigurator @095f58a systems/data/*/gemm/sglang/0.5.14 (DeepGEMM, cuBLAS, FlashInfer)', kind: 'measured by the project, read'}
  aic_moe: {ref: 'same, moe/trtllm/1.3.0rc20, balanced routing; fastest kernel of the table', kind: 'measured by the project, read'}
  aic_wide_moe: {ref: 'same, moe/sglang/0.5.10 wide-EP tables, uniform routing', kind: 'measured by the project, read'}
  aic_mla: {ref: 'same, mla/sglang/0.5.14', kind: 'measured by the project, read'}
  aic_bmm: {ref: 'same, mla_bmm/sglang/0.5.14', kind: 'measured by the project, read'}
  aic_mhc: {ref: 'same, mhc/sglang/0.5.14, two sites', kind: 'measured by the project, read'}
  aic_index: {ref: 'same, sparse_attention/sglang/0.5.14 paged_mqa_logits', kind: 'measured by the project, read'}
  aic_topk: {ref: 'same, sparse_attention/sglang/0.5.14 topk_calib, flat scores', kind: 'measured by the project, read'}
  aic_deepep: {ref: 'same, comm/sglang/0.5.12 DeepEP on one node', kind: 'measured by the project, read'}
  aic_reduce: {ref: 'same, comm/sglang/0.5.14 custom all-reduce in a graph', kind: 'measured by the project, read'}
  aic_nccl: {ref: 'same, comm/nccl/2.29.2', kind: 'measured by the project, read'}
series:"""  # noqa: E501

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

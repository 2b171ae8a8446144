"""Lines for configs/data from products.jsonl: kernel rows of BF16 products, points of BF16 chains.

python results/budget_h200/rows.py
"""

import json
from pathlib import Path

HERE = Path(__file__).parent


def main():
    records = [json.loads(line) for line in (HERE / "products.jsonl").open()]
    bf16 = [r for r in records if r.get("kind") == "bf16"]
    by_shape = {}
    for r in bf16:
        if r["what"] == "product":
            by_shape.setdefault((r["n"], r["k"]), []).append((r["m"], r["us"][3]))
    print("# series of kernels/h200.yaml")
    for (n, k), found in by_shape.items():
        m, us = [x for x, _ in found], [round(t, 3) for _, t in found]
        print(
            f"- {{id: product_{n}x{k}, source: own_products, calls: [{{op: gemm_mad.gemm, params:"
            f" {{m: $m, n: {n}, k: {k}}}}}], at: {{m: {m}}}, us: {us}}}"
        )
    print("# points of validation_points.yaml")
    for r in bf16:
        if r["what"] == "chain":
            shapes = ", ".join(f"[{n}, {k}]" for n, k in r["shapes"])
            m = r["m"]
            print(
                f"- {{id: o1_chain_bf16_{m}, role: kernel, platform: h200, model: any,"
                f" phase: kernel,\n   config: {{op: six BF16 products in a graph, chain_m: {m},"
                f" shapes: [{shapes}], source: own_h200}},\n   metrics: {{us: {{value:"
                f" {r['us'][3]:.2f}, unit: us, source: own_h200}}}}}}"
            )


if __name__ == "__main__":
    main()

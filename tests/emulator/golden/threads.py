"""SIMT: launches, identities, barriers, warp collectives, atomics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.emulator.golden.program import Check, all_of, compiled, first_difference
from tests.emulator.harness import launch
from tests.emulator.oracle import simt as oracle
from tests.emulator.oracle.types import LANES

# Each body is a SIMT function over (out, in, wrong): words of 4 bytes, one a thread at least.
BODIES = {
    "identity": (
        "(40, 3, 2)",
        """  uint32_t t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[8 * t + 0] = threadIdx.x ^ wrong;
  out[8 * t + 1] = threadIdx.y;
  out[8 * t + 2] = threadIdx.z;
  out[8 * t + 3] = blockDim.x ^ wrong;
  out[8 * t + 4] = blockDim.y;
  out[8 * t + 5] = blockDim.z;
  out[8 * t + 6] = laneid();
  out[8 * t + 7] = blockIdx.x ^ wrong;""",
    ),
    "barrier": (
        "(128)",
        """  __ubuf__ uint32_t *shared = (__ubuf__ uint32_t *)4096;
  uint32_t t = threadIdx.x;
  shared[t] = in[t];
  asc_syncthreads();
  uint32_t other = shared[127 - t];
  asc_syncthreads();
  shared[t] = other + 1;
  asc_syncthreads();
  out[t] = shared[(t + 37) % 128] + other;""",
    ),
    "fence": (
        "(64)",
        """  uint32_t t = threadIdx.x;
  out[t] = in[t] + 1;
  asc_threadfence();
  out[t] = out[t] * 3;""",
    ),
    "warp sync": (
        "(64)",
        """  __ubuf__ uint32_t *shared = (__ubuf__ uint32_t *)4096;
  uint32_t t = threadIdx.x;
  shared[t] = in[t];
  cooperative_groups::coalesced_threads().sync();
  out[t] = shared[t ^ 31];""",
    ),
    "votes": (
        "(96)",
        """  uint32_t t = threadIdx.x;
  uint32_t all = asc_ballot((in[t] & 1) != 0);
  uint32_t some = 0, active = 0;
  if ((in[t] & 2) != 0) {
    some = asc_ballot((in[t] & 1) != 0);
    active = asc_activemask();
  }
  out[4 * t] = all;
  out[4 * t + 1] = some;
  out[4 * t + 2] = active;
  out[4 * t + 3] = asc_activemask();""",
    ),
}


def _collective(call: str, ctype: str) -> str:
    """All threads, then those whose word 96 + t is odd."""
    return f"""  uint32_t t = threadIdx.x;
  {ctype} v = ((__gm__ {ctype} *)in)[t];
  uint32_t some = ((__gm__ uint32_t *)(in + 96))[t] & 1;
  {ctype} all = {call};
  {ctype} part = v;
  if (some != 0) {{
    part = {call};
  }}
  ((__gm__ {ctype} *)out)[2 * t] = all;
  ((__gm__ {ctype} *)out)[2 * t + 1] = part;"""


CTYPES = {"f32": "float", "s32": "int32_t", "u32": "uint32_t", "f16": "half"}
REDUCED = {"add": ("f32", "s32", "u32", "f16"), "max": ("f32", "s32", "u32", "f16")}
REDUCED["min"] = REDUCED["max"]
for _op, _kinds in REDUCED.items():
    for _kind in _kinds:
        BODIES[f"{_op} {_kind}"] = ("(96)", _collective(f"asc_reduce_{_op}(v)", CTYPES[_kind]))
for _kind in ("f32", "s32", "u32"):
    for _mask in (1, 5, 16, 31):
        call = f"asc_shfl_xor(v, {_mask})"
        BODIES[f"shuffle {_kind} {_mask}"] = ("(96)", _collective(call, CTYPES[_kind]))
for _op in ("add", "max", "min"):
    for _kind in ("f32", "s32", "u32"):
        # Word 0 collects; every thread keeps what it saw.
        BODIES[f"atomic {_op} {_kind}"] = (
            "(96)",
            f"""  uint32_t t = threadIdx.x;
  {CTYPES[_kind]} v = ((__gm__ {CTYPES[_kind]} *)in)[t];
  ((__gm__ {CTYPES[_kind]} *)out)[1 + t] = asc_atomic_{_op}((__gm__ {CTYPES[_kind]} *)out, v);""",
        )
NUMBER = {name: i for i, name in enumerate(BODIES)}


def _text() -> str:
    functions = "\n".join(
        f"__simt_vf__ __launch_bounds__(1024) inline void threads_simt_vf_{i}"
        f"(__gm__ uint32_t *out, __gm__ uint32_t *in, uint32_t wrong) {{\n{body}\n}}"
        for i, (_, body) in enumerate(BODIES.values())
    )
    calls = "\n".join(
        f"    case {i}: asc_vf_call<threads_simt_vf_{i}>(cce::dim3{dim}, out + "
        "int64_t(block_idx) * pitch, in, wrong); break;"
        for i, (dim, _) in enumerate(BODIES.values())
    )
    frame = (Path(__file__).parent / "threads.asc").read_text()
    return frame.replace("//FUNCTIONS", functions).replace("//CASES", calls)


TEXT = _text()


def run(name: str, words: np.ndarray, out: np.ndarray, wrong: int = 0, grid: int = 1) -> np.ndarray:
    """Output words of each block."""
    data = np.ascontiguousarray(words).view(np.uint32).copy()
    result = np.tile(out.view(np.uint32), (grid, 1))
    pitch = result.shape[1]
    launch(compiled(TEXT), [result, data, NUMBER[name], pitch, wrong], grid=grid, trace=1)
    return result


def _identity(rng: np.random.Generator, wrong: int) -> str:
    got = run("identity", np.zeros(4, np.uint32), np.zeros(240 * 8, np.uint32), wrong, grid=3)
    t = np.arange(240)
    columns = [t % 40, t // 40 % 3, t // 120, 40 + 0 * t, 3 + 0 * t, 2 + 0 * t, t % 32]
    want = np.stack(
        [np.stack([*columns, np.full(240, block)], axis=1).reshape(-1) for block in range(3)]
    )
    return first_difference(got, want.astype(np.uint32), "identity")


def _barrier(rng: np.random.Generator, wrong: int) -> str:
    words = rng.integers(0, 1000, 128).astype(np.uint32)
    mirrored = words[::-1]
    want = mirrored[(np.arange(128) + 37) % 128] + 1 + mirrored
    return first_difference(run("barrier", words, np.zeros(128, np.uint32))[0], want, "barrier")


def _fence(rng: np.random.Generator, wrong: int) -> str:
    words = rng.integers(0, 1000, 64).astype(np.uint32)
    got = run("fence", words, np.zeros(64, np.uint32))[0]
    return first_difference(got, (words + 1) * 3, "fence")


def _warp_sync(rng: np.random.Generator, wrong: int) -> str:
    words = rng.integers(1, 1 << 32, 64, dtype=np.uint32)
    want = words.reshape(2, 32)[:, ::-1].reshape(-1)
    return first_difference(run("warp sync", words, np.zeros(64, np.uint32))[0], want, "warp sync")


def _votes(rng: np.random.Generator, wrong: int) -> str:
    words = rng.integers(0, 4, 96).astype(np.uint32)
    everyone, some, odd = np.ones(96, bool), (words & 2) != 0, (words & 1) != 0
    want = np.stack(
        [
            oracle.votes(odd, everyone),
            np.where(some, oracle.votes(odd, some), 0),
            np.where(some, oracle.votes(everyone, some), 0),
            oracle.votes(everyone, everyone),
        ],
        axis=1,
    )
    got = run("votes", words, np.zeros(384, np.uint32))[0].reshape(96, 4)
    return first_difference(got, want, "votes")


def _values(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A value a thread, and which threads take the branch."""
    lane = LANES[kind]
    if lane.kind == "f":
        values = lane.codes(rng.uniform(-9, 9, 96))
    else:
        values = lane.codes(rng.integers(-50, 50, 96))
    some = rng.random(96) < 0.6
    some[:2] = True
    return values, some


def _collectives() -> Iterator[Check]:
    def check(body: str, kind: str, expect) -> str:
        def run_it(rng: np.random.Generator, wrong: int) -> str:
            lane = LANES[kind]
            values, some = _values(kind, rng)
            words = np.zeros(192, np.uint32)
            words[: values.nbytes // 4] = values.view(np.uint32)
            words[96:] = some
            out = run(body, words, np.zeros(192, np.uint32))[0].view(lane.code)[:192]
            want = np.stack(
                [expect(values, np.ones(96, bool)), np.where(some, expect(values, some), values)],
                axis=1,
            )
            return first_difference(out.reshape(96, 2), want, body)

        return run_it

    for op, kinds in REDUCED.items():
        for kind in kinds:
            reduce = check(
                f"{op} {kind}", kind, lambda v, on, op=op, k=kind: oracle.reduce(op, k, v, on)
            )
            yield Check((f"asc_reduce_{op}.simt",), kind, reduce)
    for kind in ("f32", "s32", "u32"):
        for mask in (1, 5, 16, 31):
            shuffle = check(
                f"shuffle {kind} {mask}", kind, lambda v, on, m=mask: oracle.shuffle_xor(v, m, on)
            )
            yield Check(("asc_shfl_xor",), f"{kind} ^ {mask}", shuffle)


def _atomics() -> Iterator[Check]:
    for op in ("add", "max", "min"):
        for kind in ("f32", "s32", "u32"):

            def atomic(rng, wrong, op=op, kind=kind):
                lane = LANES[kind]
                values = rng.integers(1, 100, 97)
                codes = lane.codes(values.astype(np.float64) if kind == "f32" else values)
                out = np.zeros(97, np.uint32)
                out[0] = codes[96]
                got = lane.values(run(f"atomic {op} {kind}", codes[:96], out)[0].view(lane.code))
                start, given = values[96], values[:96]
                total = {"add": start + given.sum(), "max": values.max(), "min": values.min()}[op]
                seen = got[1:]
                # Threads may come in any order: what they saw is a path from the start to the end.
                if op == "add":
                    steps = np.argsort(seen, kind="stable")
                    path = np.concatenate([[start], start + np.cumsum(given[steps])])
                    bad = not np.array_equal(seen[steps], path[:-1])
                else:
                    best = np.maximum if op == "max" else np.minimum
                    bad = not np.isin(seen, values).all() or (best(seen, total) != total).any()
                return all_of(
                    [
                        "" if got[0] == total else f"{op} {kind}: got {got[0]}, wanted {total}",
                        f"{op} {kind}: old values are no path" if bad else "",
                    ]
                )

            yield Check((f"asc_atomic_{op}",), kind, atomic)


CHECKS = [
    Check(("asc_vf_call", "laneid"), "3 blocks of (40, 3, 2) threads", _identity),
    Check(("threadIdx", "blockIdx", "blockDim"), "3 blocks of (40, 3, 2)", _identity, hooked=False),
    Check(("asc_syncthreads",), "a value passed between warps", _barrier),
    Check(("asc_threadfence",), "own writes stay in order", _fence),
    Check(("coalesced_threads.sync",), "a value passed within a warp", _warp_sync),
    Check(("asc_ballot", "asc_activemask"), "all threads, and those of a branch", _votes),
    *_collectives(),
    *_atomics(),
]

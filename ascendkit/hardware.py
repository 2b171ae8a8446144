"""What a machine can do: one record a device, every number with its source.

A **rank** is one device as the runtime sees it: a die on 910C, a chip on 950, a GPU on NVIDIA.
Rates are dense peaks, one direction for links. An unknown number is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ascendkit.data import resolve, table
from ascendkit.errors import bad_value, unknown

UB_BYTES = 248 * 1024
"""What a kernel may use of an Ascend 950's Unified Buffer (TileKernels 2.1.0, config.py)."""
UB_BYTES_SIMT = 216 * 1024
"""The same with SIMT functions, whose data cache lies in it (the same file)."""


@dataclass(frozen=True, eq=False)
class Device:
    """One row of the hardware table."""

    key: str
    leaves: Mapping[str, Mapping[str, Any]]

    def get(self, name: str) -> Any:
        """Value of a leaf; None where the table does not know it."""
        leaf = self.leaves.get(name)
        return None if leaf is None else leaf["value"]

    @property
    def title(self) -> str:
        """Vendor's name of the device."""
        return str(self.get("name"))

    @property
    def ranks_per_package(self) -> int:
        """Ranks in one package: 2 dies on 910C, 1 elsewhere."""
        return int(self.get("ranks_per_package") or 1)

    def flops_per_s(self, unit: str, dtype: str) -> float | None:
        """Peak rate of a unit for a dtype, in FLOP/s (or integer op/s)."""
        if unit == "vector":
            return _scaled(self.get("vector_fp32_tflops"), 1e12)
        for leaf in (f"peak_{dtype}_tflops", f"peak_{dtype}_tops"):
            if self.get(leaf) is not None:
                return _scaled(self.get(leaf), 1e12)
        return None

    def bytes_per_s(self, level: str) -> float | None:
        """Peak rate of a memory level (``hbm``, ``l2``, ``onchip``), in B/s."""
        if level == "onchip":
            return _scaled(self.get("onchip_tbs"), 1e12)
        return _scaled(self.get(f"{level}_tbs"), 1e12)

    def link_bytes_per_s(self, link: str) -> float | None:
        """Peak rate of a link (``scaleup``, ``scaleout``), in B/s, one way, for one rank."""
        leaf = {"scaleup": "scaleup_gbs_unidir", "scaleout": "scaleout_gbs"}[link]
        return _scaled(self.get(leaf), 1e9)

    @property
    def scaleup_ranks(self) -> int | None:
        """Ranks in one scale-up domain (a node, a rack, a SuperPoD)."""
        got = self.get("scaleup_ranks") or self.get("supernode_ranks")
        return None if got is None else int(got)

    @property
    def hbm_bytes(self) -> float | None:
        """Device memory in bytes (1 GB = 1e9 B, as vendors count)."""
        return _scaled(self.get("hbm_gb"), 1e9)

    def conflicts(self, *names: str) -> list[str]:
        """Sentences on sources that disagree about the given leaves."""
        out = []
        for name in names:
            leaf = self.leaves.get(name, {})
            if "conflict" in leaf:
                out.append(f"{self.key}.{name} = {leaf['value']}: {leaf['conflict']}")
        return out

    def recalled(self, *names: str) -> list[str]:
        """Sentences on leaves quoted from memory, not read in a source."""
        kinds = {k: s["kind"] for k, s in table("hardware")["sources"].items()}
        found = [
            n for n in names if kinds.get(str(self.leaves.get(n, {}).get("source"))) == "recalled"
        ]
        return [f"from memory, not from a source: {', '.join(found)}"] if found else []

    def scaled(self, **factors: float) -> Device:
        """The same device with some rates multiplied: a what-if, never a fact.

        Args:
            factors: by leaf group: ``hbm``, ``l2``, ``cube``, ``fp4``, ``vector``, ``scaleup``,
                ``scaleout``.

        Raises ValueError for an unknown group or a factor that is not positive.
        """
        leaves = dict(self.leaves)
        for group, factor in factors.items():
            if group not in _GROUPS:
                raise unknown("what_if", group, _GROUPS)
            if not 1e-3 <= factor <= 1e3:
                near = min(max(factor, 1e-3), 1e3) if factor > 0 else 1.0
                raise bad_value(f"what_if.{group}", factor, "a factor of 0.001 to 1000", near)
            for name, leaf in self.leaves.items():
                if leaf["value"] is not None and _GROUPS[group](name):
                    value = leaves[name]["value"]
                    leaves[name] = {**leaf, "value": value * factor}
        return Device(self.key, leaves)


_GROUPS: dict[str, Callable[[str], bool]] = {
    "hbm": lambda n: n == "hbm_tbs",
    "l2": lambda n: n == "l2_tbs",
    "cube": lambda n: n.startswith("peak_"),
    "fp4": lambda n: n in ("peak_fp4_tflops", "peak_mxfp4_tflops", "peak_w4a8_tflops"),
    "vector": lambda n: n == "vector_fp32_tflops",
    "scaleup": lambda n: n == "scaleup_gbs_unidir",
    "scaleout": lambda n: n == "scaleout_gbs",
}


def devices() -> tuple[str, ...]:
    """Keys of all devices."""
    return tuple(table("hardware")["devices"])


def device(name: object) -> Device:
    """A device by key or alias; ValueError naming the nearest."""
    return _device(resolve("hardware", name, devices()))


@lru_cache(maxsize=64)
def _device(key: str) -> Device:
    return Device(key, table("hardware")["devices"][key])


def _scaled(value: Any, factor: float) -> float | None:
    return None if value is None else float(value) * factor

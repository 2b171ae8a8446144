"""Two questions the same constants answer: what FP8 dispatch saves, and which engine should carry a
message on Ascend."""

from __future__ import annotations

from dataclasses import dataclass

from ascendkit.errors import bad_value
from ascendkit.hardware import device
from ep_comm.model.fit import constants
from ep_comm.model.predict import predict
from ep_comm.model.published import shape
from ep_comm.model.volume import row_bytes

DEVICE_OF = {"ascend_950dt": "ascend_950dt", "h800_v1": "h800", "h800_ll": "h800",
             "sm90_cx7": "h100", "sm100_nvlink": "b200", "sm100_nvlink_24sm": "b200"}  # fmt: skip
AIV_STORE_GBS = 95.0
"""One vector core storing while its neighbour does too (950DT, published kernel measurements)."""


@dataclass(frozen=True)
class Saving:
    """FP8 dispatch against bf16 dispatch, microseconds of one rank and layer.

    Args:
        bf16_us, fp8_us: main kernels.
        epilogue_us: saved by the copy epilogue, which moves fewer bytes (at the memory's peak).
        cast_us: spent on the cast before (at the memory's peak); 0 where the producer writes FP8.
        step_us: dispatch with epilogue and combine, in bf16.
        saved_us: bf16 minus FP8, all counted.
    """

    bf16_us: float
    fp8_us: float
    epilogue_us: float
    cast_us: float
    step_us: float
    saved_us: float


def fp8_saving(machine: str, ranks: int, fused_cast: bool = False) -> Saving:
    """What FP8 dispatch saves on the published shape."""
    if machine == "h800_ll":
        raise bad_value("machine", machine, "one with a run of rows sent once a rank", "h800_v1")
    s = shape(machine)
    hbm = device(DEVICE_OF[machine]).bytes_per_s("hbm")
    if not hbm:
        raise bad_value("machine", machine, "one whose memory rate is known")
    wide = predict(machine, "dispatch", ranks, dtype="bf16")
    narrow = predict(machine, "dispatch", ranks)
    back = predict(machine, "combine", ranks)
    copies = s["num_tokens"] * narrow.volume.copies
    b16, b8 = row_bytes("combine", s["hidden"]), row_bytes("dispatch", s["hidden"])
    copy = 1e6 * 2 * copies / hbm
    cast = 0.0 if fused_cast else 1e6 * s["num_tokens"] * (b16 + b8) / hbm
    saved = wide.us - narrow.us + copy * (b16 - b8) - cast
    return Saving(
        wide.us, narrow.us, copy * (b16 - b8), cast, wide.us + copy * b16 + back.us, saved
    )


@dataclass(frozen=True)
class Carrier:
    """Which engine is faster for one message to one peer.

    Args:
        ubmem_us: stores by vector cores; no start cost is counted.
        urma_us: the fitted cost of a peer, then the fitted rate.
        break_even_bytes: from here on URMA is faster; inf where stores always are.
    """

    cores: int
    num_bytes: float
    ubmem_us: float
    urma_us: float
    break_even_bytes: float

    @property
    def choice(self) -> str:
        """``ubmem`` or ``urma``."""
        return "ubmem" if self.ubmem_us <= self.urma_us else "urma"


def carrier(num_bytes: float, cores: int) -> Carrier:
    """UBMEM (load and store) against URMA for a message, 950DT.

    Args:
        cores: vector cores that store; they cannot compute meanwhile.
    """
    for name, got, least in (("cores", cores, 1), ("num_bytes", num_bytes, 0)):
        if got < least:
            raise bad_value(name, got, f"at least {least}", least)
    c = constants("ascend_950dt", "dispatch")
    link = float(device("ascend_950dt").get("scaleup_gbs_unidir"))
    store = min(cores * AIV_STORE_GBS, link)
    even = float("inf")
    if store < c.scaleup_gbs:
        even = c.peer_us * 1e3 / (1 / store - 1 / c.scaleup_gbs)
    return Carrier(
        cores, num_bytes, num_bytes / store / 1e3,
        c.peer_us + num_bytes / c.scaleup_gbs / 1e3, even,
    )  # fmt: skip

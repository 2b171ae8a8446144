"""How many SMs keep a link busy: upstream's analytic rule for dispatch on NVIDIA GPUs.

All traffic is counted in copies inside the node of one token. An SM reads 180 GB/s and writes 45.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ascendkit.errors import bad_value
from ep_comm.routing import expected_parts

READ_GBS, WRITE_GBS = 180.0, 45.0
SPARE = 1.3
"""Upstream takes so much more than the bound asks for."""
GRAIN, OVERLAP_OFF = 4, 64


@dataclass(frozen=True)
class Sms:
    """SMs and queue pairs.

    Args:
        bound: SMs at which the link binds, before rounding.
        num_sms: a multiple of 4, at least 4.
        num_qps: queue pairs that go with them.
    """

    bound: float
    num_sms: int
    num_qps: int


def theoretical_sms(
    num_experts: int,
    num_topk: int,
    scaleout_ranks: int,
    scaleup_ranks: int,
    scaleup_gbs: float,
    scaleout_gbs: float = 50.0,
    *,
    hybrid: bool = True,
    prefer_overlap_with_compute: bool = True,
    device_sms: int = 132,
) -> Sms:
    """SMs for dispatch of balanced routing.

    Args:
        scaleup_gbs, scaleout_gbs: of a rank, one way, as reached.
        hybrid: forward inside nodes where there are several.
        prefer_overlap_with_compute: take no more than the link needs.

    Source: DeepEP 2.5.0.
    """
    if min(scaleup_gbs, scaleout_gbs) <= 0:
        raise bad_value("link rates", (scaleup_gbs, scaleout_gbs), "positive GB/s")
    so, su = scaleout_ranks, scaleup_ranks
    ranks = so * su
    copies = expected_parts(num_experts, num_topk, ranks)
    read = 1 / copies
    two_hops = hybrid and so > 1
    if two_hops:
        nodes = expected_parts(num_experts, num_topk, so)
        write, read = 1 / copies + nodes / so / copies + 1, read + nodes / copies
        out, up = nodes * (1 - 1 / so) / copies, 1 - 1 / su
    else:
        write = (1 / copies if so > 1 else 0.0) + su / ranks
        out, up = (ranks - su) / ranks, su / ranks * (1 - 1 / su)
    network = two_hops and out / scaleout_gbs > up / scaleup_gbs
    share, rate = (out, scaleout_gbs) if network else (up, scaleup_gbs)
    if not share:
        return Sms(0.0, GRAIN, GRAIN)
    tokens = rate / share
    bound = tokens * max(
        read / READ_GBS, write / WRITE_GBS, (write - up) / READ_GBS, (read + up) / WRITE_GBS
    )
    wanted = max(GRAIN, math.ceil(SPARE * bound))
    wanted = -(-wanted // GRAIN) * GRAIN
    if not prefer_overlap_with_compute:
        wanted = max(wanted, OVERLAP_OFF)
    num = min(wanted, device_sms // 2 * 2)
    return Sms(bound, num, 16 * num + 1 if two_hops else min(num, 9))

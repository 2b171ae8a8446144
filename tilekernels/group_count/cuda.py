"""group_count on NVIDIA GPUs: one cluster for what it reads in time, else two launches."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.group_count.cuda_program import add_parts, count_in_cluster, count_parts
from tilekernels.machine import compile_cuda, grain

if TYPE_CHECKING:
    import torch

CLUSTER_INDICES = 1 << 16
"""Up to here eight SMs read the indices sooner than a second kernel starts."""
MAX_PARTS = 132


def supports(case: Case) -> Support:
    """Every legal shape."""
    return Support(True)


def run(group_idx: "torch.Tensor", num_groups: int, *, out: "torch.Tensor") -> None:
    """Fill ``out`` int32 (num_groups,)."""
    histogram(group_idx, num_groups, out, 1.0)


def histogram(
    indices: "torch.Tensor", num_groups: int, out: "torch.Tensor", divisor: float
) -> None:
    """Counts into an int32 ``out``; into a float32 one counts * num_groups / divisor."""
    import torch

    flat = indices.view(-1)
    if not len(flat):
        out.zero_()
        return
    width = grain(flat.nbytes, flat) // 8
    as_float = out.dtype == torch.float32
    if len(flat) <= CLUSTER_INDICES:
        cluster_kernel(num_groups, width, as_float)(flat, out, divisor)
        return
    parts = torch.empty((MAX_PARTS, num_groups), dtype=torch.int32, device=out.device)
    parts_kernel(num_groups, width, MAX_PARTS)(flat, parts)
    sum_kernel(num_groups, MAX_PARTS, as_float)(parts, out, divisor)


@lru_cache(maxsize=64)
def cluster_kernel(num_groups: int, width: int, as_float: bool, arch: str = "") -> Any:
    """The compiled kernel that does it all; ``arch`` compiles where no GPU is."""
    return compile_cuda(count_in_cluster(num_groups, width, as_float), arch)


@lru_cache(maxsize=64)
def parts_kernel(num_groups: int, width: int, num_parts: int, arch: str = "") -> Any:
    """The compiled kernel of one histogram a block."""
    return compile_cuda(count_parts(num_groups, width, num_parts), arch)


@lru_cache(maxsize=64)
def sum_kernel(num_groups: int, num_parts: int, as_float: bool, arch: str = "") -> Any:
    """The compiled kernel that adds the histograms."""
    return compile_cuda(add_parts(num_groups, num_parts, as_float), arch)

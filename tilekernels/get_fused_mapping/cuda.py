"""get_fused_mapping on NVIDIA GPUs: one launch of clusters, or two for many entries."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ascendkit.op import Case, Support
from tilekernels.get_fused_mapping import cuda_program as programs
from tilekernels.machine import compile_cuda, grain

if TYPE_CHECKING:
    import torch

CLUSTER_ENTRIES = 1 << 16
"""Up to here eight SMs read the entries sooner than a second kernel starts."""


def supports(case: Case) -> Support:
    """Every legal shape."""
    return Support(True)


def run(
    topk_idx: "torch.Tensor",
    num_experts: int,
    num_expanded_tokens: int,
    alignment: int,
    *,
    out: "tuple[torch.Tensor, ...]",
) -> None:
    """Fill the seven outputs."""
    import torch

    flat, topk = topk_idx.view(-1), topk_idx.shape[1]
    maps = tuple(t.view(-1) for t in out)
    if len(flat) <= CLUSTER_ENTRIES:
        width = grain(flat.nbytes, flat) // 8
        cluster_kernel(num_experts, topk, width)(flat, *maps, alignment)
        return
    counts = torch.empty((programs.RUNS, num_experts), dtype=torch.int32, device=flat.device)
    count, place = kernels(num_experts, topk)
    count(flat, counts)
    place(flat, counts, *maps, alignment)


@lru_cache(maxsize=64)
def cluster_kernel(num_experts: int, num_topk: int, width: int, arch: str = "") -> Any:
    """The compiled kernel of one launch; ``arch`` compiles where no GPU is."""
    return _compiled(programs.cluster_program(num_experts, num_topk, width), arch)


@lru_cache(maxsize=64)
def kernels(num_experts: int, num_topk: int, arch: str = "") -> tuple[Any, Any]:
    """Both compiled kernels of two launches."""
    count = programs.count_program(num_experts)
    return _compiled(count, arch), _compiled(programs.place_program(num_experts, num_topk), arch)


def _compiled(program: Any, arch: str) -> Any:
    return compile_cuda(
        program, arch, TL_DISABLE_THREAD_STORAGE_SYNC=True, TL_DISABLE_SHARED_MEMORY_REUSE=True
    )

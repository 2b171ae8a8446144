"""RadixSelect TopK: the k largest of long rows, for the indexer and for sampling.

``topk.topk`` selects, ``topk.requirements`` says what the fast path wants of strides. Importing
this package imports no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topk.radix_select import requirements, topk

__all__ = ["requirements", "topk"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from topk import radix_select

        return getattr(radix_select, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted((*globals(), *__all__))

"""Cost of gathering Engram rows from a table sharded over ranks."""

from ascendkit.cost import Cost


def cost(num_tokens, rows_per_token, row_bytes, shards=1, backward=False):
    """Random row reads, and the share that comes over the link.

    Args:
        num_tokens, rows_per_token: tokens and rows a token (n-gram orders x heads).
        row_bytes: bytes of a stored row, scales included.
        shards: ranks the table is spread over; (1 - 1/shards) of the rows are remote.
        backward: row gradients go the other way (all-to-all, sparse update).
    """
    names = dict(num_tokens=num_tokens, rows=rows_per_token, row_bytes=row_bytes, shards=shards)
    return (
        Cost(names)
        .read("rows", "num_tokens*rows*row_bytes", state=True)
        .write("rows", "num_tokens*rows*row_bytes")
        .link("remote rows", "num_tokens*rows*row_bytes*(1-1/shards)")
    )

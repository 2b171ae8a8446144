"""Sum over ranks, every rank gets its shard; values counts the full tensor."""

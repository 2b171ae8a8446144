"""Lightning indexer: logits of every query against the index keys."""

"""RadixSelect TopK: the k largest of long rows, for the indexer and for sampling."""

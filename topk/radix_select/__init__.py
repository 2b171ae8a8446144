"""RadixSelect TopK: the k largest of every row."""

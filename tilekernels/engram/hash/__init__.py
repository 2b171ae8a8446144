"""Hash the last tokens into n-gram table rows."""

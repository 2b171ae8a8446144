"""One golden a table entry: snippets, inputs, and the oracle's answer."""

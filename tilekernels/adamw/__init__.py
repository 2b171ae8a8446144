"""AdamW optimizer update."""

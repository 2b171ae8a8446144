"""RMSNorm, optionally with a quantised output."""

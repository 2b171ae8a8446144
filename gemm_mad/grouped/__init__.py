"""Grouped matrix product over the experts of one rank."""

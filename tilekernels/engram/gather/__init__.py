"""Gather Engram rows from a sharded table."""

"""Rotary position embedding, in place."""

"""Entries of a disk cache that tests write and read."""

from __future__ import annotations

from pathlib import Path

from ascendkit.jit.disk import DiskCache

NAME = f"tag.{'0' * 32}"
OTHER = f"tag.{'1' * 32}"


def publish(cache: DiskCache, name: str = NAME, data: bytes = b"code") -> Path:
    with cache.stage() as staged:
        (staged / "kernel.so").write_bytes(data)
        (staged / "meta.json").write_bytes(b"{}")
        return cache.publish(staged, name).directory


def read(cache: DiskCache, name: str = NAME) -> bytes | None:
    entry = cache.lookup(name)
    return None if entry is None else (entry.directory / "kernel.so").read_bytes()

"""Everything an entry of the disk cache can suffer: it is no hit, and is replaced."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ascendkit.jit.digest import content_digest
from ascendkit.jit.disk import DiskCache
from ascendkit.jit.manifest import MARKER, Damage, Manifest

from .disk_entries import NAME, OTHER, publish, read

pytestmark = pytest.mark.usefixtures("impatient")


def _seal(folder: Path, body: bytes) -> None:
    (folder / MARKER).write_bytes(body + b"\n" + content_digest(body).encode())


def _rewrite(change: Callable[[dict], None]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        body = (folder / MARKER).read_bytes().rstrip().rpartition(b"\n")[0]
        record = json.loads(body)
        change(record)
        _seal(folder, json.dumps(record).encode())

    return spoil


def _flip(folder: Path) -> None:
    data = bytearray((folder / "kernel.so").read_bytes())
    data[1] ^= 4
    (folder / "kernel.so").write_bytes(data)


def _fifo(folder: Path) -> None:
    (folder / "kernel.so").unlink()
    os.mkfifo(folder / "kernel.so")


def _folder(folder: Path) -> None:
    (folder / "kernel.so").unlink()
    (folder / "kernel.so").mkdir()


def _loop(folder: Path) -> None:
    (folder / "kernel.so").unlink()
    (folder / "kernel.so").symlink_to("kernel.so")


def _file_for_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_bytes(b"not a folder")


def _dangling(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.symlink_to("nowhere")


SPOILS: dict[str, Callable[[Path], None]] = {
    "bit flipped": _flip,
    "truncated": lambda folder: os.truncate(folder / "kernel.so", 2),
    "emptied": lambda folder: os.truncate(folder / "kernel.so", 0),
    "grown": lambda folder: (folder / "kernel.so").write_bytes(b"codecode"),
    "artifact gone": lambda folder: (folder / "kernel.so").unlink(),
    "metadata gone": lambda folder: (folder / "meta.json").unlink(),
    "metadata edited": lambda folder: (folder / "meta.json").write_bytes(b"[]"),
    "a pipe": _fifo,
    "a folder": _folder,
    "a link loop": _loop,
    "marker gone": lambda folder: (folder / MARKER).unlink(),
    "marker emptied": lambda folder: os.truncate(folder / MARKER, 0),
    "marker truncated": lambda folder: os.truncate(folder / MARKER, 40),
    "marker is noise": lambda folder: (folder / MARKER).write_bytes(b"\xff\0" * 50),
    "marker is another type": lambda folder: _seal(folder, b"[1]"),
    "marker nests deeply": lambda folder: _seal(folder, b"[" * 100_000),
    "marker's name is a list": _rewrite(lambda record: record.update(name=[])),
    "marker of another format": _rewrite(lambda record: record.update(format="x")),
    "marker of another entry": _rewrite(lambda record: record.update(name=OTHER)),
    "marker with no files": _rewrite(lambda record: record.update(files={})),
    "marker without files": _rewrite(lambda record: record.pop("files")),
    "marker with odd files": _rewrite(lambda record: record.update(files={"kernel.so": 1})),
    "marker leaves the folder": _rewrite(lambda r: r["files"].update({"../x": [0, ""]})),
    "marker names a root": _rewrite(lambda r: r["files"].update({"/etc/hostname": [0, ""]})),
    "entry is a file": _file_for_folder,
    "entry is a dangling link": _dangling,
}


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS.keys())
def test_spoiled_entries_are_replaced(home: Path, spoil: Callable[[Path], None]) -> None:
    cache = DiskCache([home / "r"])
    folder = publish(cache, data=b"code")
    spoil(folder)
    assert cache.lookup(NAME) is None
    publish(cache, data=b"anew")
    assert read(cache) == b"anew"
    assert list((home / "r" / "tmp").iterdir()) == []


def test_a_copied_entry_is_foreign(home: Path) -> None:
    cache = DiskCache([home / "r"])
    shutil.copytree(publish(cache), home / "r" / "cache" / OTHER)
    assert cache.lookup(OTHER) is None
    assert cache.lookup(NAME) is not None


def test_no_byte_of_the_marker_may_change(home: Path) -> None:
    data = (publish(DiskCache([home / "r"])) / MARKER).read_bytes()
    Manifest.parse(data)
    for place in range(len(data) - 1):
        for spoiled in (data[:place], data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]):
            with pytest.raises(Damage):
                Manifest.parse(spoiled)

"""The disk cache: lifecycle, several roots, and everything an entry can suffer."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ascendkit.jit import disk as disk_module
from ascendkit.jit import files
from ascendkit.jit.digest import content_digest
from ascendkit.jit.disk import DiskCache
from ascendkit.jit.manifest import MARKER, Damage, Manifest

NAME = f"tag.{'0' * 32}"
OTHER = f"tag.{'1' * 32}"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_module, "RETRY_DELAYS_S", (0.0001,) * 5)


def publish(cache: DiskCache, name: str = NAME, data: bytes = b"code") -> Path:
    with cache.stage() as staged:
        (staged / "kernel.so").write_bytes(data)
        (staged / "meta.json").write_bytes(b"{}")
        return cache.publish(staged, name).directory


def read(cache: DiskCache, name: str = NAME) -> bytes | None:
    entry = cache.lookup(name)
    return None if entry is None else (entry.directory / "kernel.so").read_bytes()


def test_lifecycle(home: Path) -> None:
    cache = DiskCache([home / "r"])
    assert cache.lookup(NAME) is None
    assert not (home / "r").exists(), "a miss must not create anything"
    assert publish(cache) == home / "r" / "cache" / NAME
    assert read(cache) == b"code"
    assert list((home / "r" / "tmp").iterdir()) == []


def test_abandoned_build_leaves_nothing(home: Path) -> None:
    cache = DiskCache([home / "r"])
    with pytest.raises(KeyboardInterrupt), cache.stage() as staged:
        (staged / "deep").mkdir()
        (staged / "deep" / "x").touch()
        raise KeyboardInterrupt
    assert list((home / "r" / "tmp").iterdir()) == []
    assert cache.lookup(NAME) is None


def test_first_to_publish_wins(home: Path) -> None:
    cache = DiskCache([home / "r"])
    publish(cache, data=b"first")
    publish(cache, data=b"second")
    assert read(cache) == b"first"
    assert list((home / "r" / "tmp").iterdir()) == []


def test_roots_in_order(home: Path) -> None:
    one, two = DiskCache([home / "1"]), DiskCache([home / "2"])
    both = DiskCache([home / "1", home / "2"])
    publish(two, data=b"two")
    assert read(both) == b"two"
    publish(one, data=b"one")
    assert read(both) == b"one"
    publish(both, OTHER, b"new")
    assert read(one, OTHER) == b"new"
    assert read(two, OTHER) is None


@pytest.mark.parametrize("state", ["uncommitted", "damaged"])
def test_a_bad_first_root_hides_no_good_second(home: Path, state: str) -> None:
    publish(DiskCache([home / "2"]), data=b"two")
    if state == "damaged":
        folder = publish(DiskCache([home / "1"]), data=b"one")
        (folder / "kernel.so").write_bytes(b"0ne")
    else:
        (home / "1" / "cache" / NAME).mkdir(parents=True)
    assert read(DiskCache([home / "1", home / "2"])) == b"two"


def test_a_bad_second_root_is_no_hit(home: Path) -> None:
    (home / "2" / "cache" / NAME).mkdir(parents=True)
    assert DiskCache([home / "1", home / "2"]).lookup(NAME) is None


def test_a_hit_touches_the_marker(home: Path) -> None:
    cache = DiskCache([home / "r"])
    marker = publish(cache) / MARKER
    os.utime(marker, (1, 1))
    cache.lookup(NAME)
    assert marker.stat().st_mtime > 1


def test_a_marker_that_cannot_be_touched(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(DiskCache([home / "2"]), data=b"two")

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(1, "read-only")

    monkeypatch.setattr(os, "utime", refuse)
    assert read(DiskCache([home / "1", home / "2"])) == b"two"


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


def test_a_root_may_move(home: Path) -> None:
    publish(DiskCache([home / "r"]), data=b"code")
    (home / "r").rename(home / "moved")
    assert read(DiskCache([home / "moved"])) == b"code"


def test_no_byte_of_the_marker_may_change(home: Path) -> None:
    data = (publish(DiskCache([home / "r"])) / MARKER).read_bytes()
    Manifest.parse(data)
    for place in range(len(data) - 1):
        for spoiled in (data[:place], data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]):
            with pytest.raises(Damage):
                Manifest.parse(spoiled)


def test_late_visibility_of_a_winner(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a network file system another machine's files show up some time after its rename."""
    cache = DiskCache([home / "r"])
    publish(cache, data=b"winner")
    real = files.read_file
    waits = {MARKER: 2, "kernel.so": 1, "meta.json": 1}

    def late(path: Path) -> bytes:
        if waits.get(path.name, 0):
            waits[path.name] -= 1
            if path.name == "meta.json":
                return b""
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return real(path)

    for module in ("disk.files", "manifest"):
        monkeypatch.setattr(f"ascendkit.jit.{module}.read_file", late)
    entry = cache.lookup(NAME, patient=True)
    assert entry is not None
    assert not any(waits.values())


def test_a_loser_waits_for_a_late_winner(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DiskCache([home / "r"])
    publish(cache, data=b"winner")
    real = files.read_file
    misses = [1, 1, 1]

    def late(path: Path) -> bytes:
        if path.name == MARKER and misses:
            misses.pop()
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return real(path)

    monkeypatch.setattr("ascendkit.jit.disk.files.read_file", late)
    publish(cache, data=b"loser")
    assert not misses
    assert read(cache) == b"winner"


def test_without_patience_a_miss_is_quick(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_module, "RETRY_DELAYS_S", (60.0,))
    assert DiskCache([home / "1", home / "2"]).lookup(NAME) is None


def test_remains_of_the_dead_are_swept_at_the_first_build(home: Path) -> None:
    cache = DiskCache([home / "r"])
    (home / "r" / "tmp").mkdir(parents=True)
    with DiskCache([home / "r"]).stage() as alive:
        machine, unique = alive.name.split("-")[1], alive.name.split("-")[3]
        dead = home / "r" / "tmp" / f"{alive.name.split('-')[0]}-{machine}-{'0' * 8}-{unique}"
        dead.mkdir()
        (dead / "half.so").touch()
        (home / "r" / "tmp" / "someone else's").mkdir()
        publish(cache)
        assert sorted(path.name for path in (home / "r" / "tmp").iterdir()) == sorted(
            [alive.name, "someone else's"]
        )


def test_everything_is_flushed_before_it_shows(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut after the rename must find all files whole: also those the compiler wrote."""
    cache = DiskCache([home / "r"])
    flushed: set[int] = set()
    fsync, rename = os.fsync, os.rename

    def note(fd: int) -> None:
        fsync(fd)
        flushed.add(os.fstat(fd).st_ino)

    def check(source: Path, target: Path) -> None:
        written = {path.stat().st_ino for path in (source, *source.rglob("*"))}
        assert written <= flushed
        rename(source, target)
        flushed.clear()

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(os, "rename", check)
    with cache.stage() as staged:
        (staged / "kernel.so").write_bytes(b"by the compiler")
        (staged / "asm").mkdir()
        (staged / "asm" / "kernel.s").write_bytes(b"too")
        cache.publish(staged, NAME)
    assert flushed == {(home / "r" / "cache").stat().st_ino}, "and so is the new name"


def test_no_root() -> None:
    with pytest.raises(ValueError, match=r"at least one root"):
        DiskCache([])

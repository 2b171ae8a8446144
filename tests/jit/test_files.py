"""File operations, commands and unique names."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ascendkit.jit import command, files, staging
from ascendkit.jit.errors import TAIL_LINES, CommandError, tail


def test_binary_round_trip(home: Path) -> None:
    data = bytes(range(256)) * 5000 + b"\r\n\0"
    files.write_file(home / "x", data)
    assert files.read_file(home / "x") == data


def test_writing_never_replaces(home: Path) -> None:
    files.write_file(home / "x", b"1")
    with pytest.raises(FileExistsError):
        files.write_file(home / "x", b"2")
    assert files.read_file(home / "x") == b"1"


def test_short_writes_are_continued(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:3])))
    files.write_file(home / "x", b"0123456789")
    monkeypatch.undo()
    assert files.read_file(home / "x") == b"0123456789"


def test_short_reads_are_continued(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call reads 2 GiB at most, and less where a network is slow."""
    read = os.read
    files.write_file(home / "x", b"0123456789")
    monkeypatch.setattr(os, "read", lambda fd, size: read(fd, min(size, 3)))
    assert files.read_file(home / "x") == b"0123456789"


def test_files_without_a_size() -> None:
    assert files.read_file(Path("/proc/self/status")).startswith(b"Name:")


def test_a_pipe_or_folder_is_not_read(home: Path) -> None:
    os.mkfifo(home / "pipe")
    for path in (home / "pipe", home, Path("/dev/zero")):
        with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
            files.read_file(path)


def test_remove_tree_follows_no_link(home: Path) -> None:
    (home / "keep").mkdir()
    (home / "keep" / "file").touch()
    (home / "tree").mkdir()
    (home / "tree" / "link").symlink_to(home / "keep")
    files.remove_tree(home / "tree")
    files.remove_tree(home / "missing")
    (home / "link").symlink_to(home / "keep")
    files.remove_tree(home / "link")
    assert [path.name for path in home.iterdir() if "fake" not in path.name] == ["keep"]
    assert (home / "keep" / "file").exists()


def test_touch(home: Path) -> None:
    (home / "x").touch()
    os.utime(home / "x", (1, 1))
    files.touch(home / "x")
    assert time.time() - (home / "x").stat().st_mtime < 60
    files.touch(home / "missing")
    assert not (home / "missing").exists()


def test_executable(home: Path) -> None:
    (home / "x").touch(mode=0o644)
    assert not files.is_executable(home / "x")
    (home / "x").chmod(0o755)
    assert files.is_executable(home / "x")
    assert not files.is_executable(home)


def test_folders_that_cannot_be_flushed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    code = errno.EINVAL
    files.sync_tree(home)
    code = errno.EIO
    with pytest.raises(OSError, match=r"Input/output error"):
        files.sync_tree(home)


def test_command_output_and_folder(home: Path) -> None:
    script = "import os, sys; print(os.getcwd()); print(sys.argv[1], file=sys.stderr)"
    output = command.run([sys.executable, "-c", script, "a b'\"$(x)编"], cwd=home)
    assert output.splitlines() == [str(home), "a b'\"$(x)编"]


@pytest.mark.parametrize("argv", [[], [""]])
def test_empty_command(argv: list[str]) -> None:
    with pytest.raises(ValueError, match=r"command must not be empty"):
        command.run(argv)


def test_exit_codes(home: Path) -> None:
    with pytest.raises(CommandError, match=r"command failed with exit code 7") as caught:
        command.run(["sh", "-c", "echo why; exit 7"])
    assert caught.value.returncode == 7
    assert caught.value.output == "why\n"
    with pytest.raises(CommandError, match=f"exit code {128 + signal.SIGKILL}"):
        command.run(["sh", "-c", "kill -9 $$"])
    with pytest.raises(CommandError, match=r"(?s)exit code 127.*No such file"):
        command.run([str(home / "none")])
    (home / "plain").touch()
    with pytest.raises(CommandError, match=r"Permission denied"):
        command.run([str(home / "plain")])


def test_a_grandchild_does_not_hold_us_up() -> None:
    start = time.monotonic()
    assert command.run(["sh", "-c", "sleep 20 & echo $!"]).strip().isdigit()
    assert time.monotonic() - start < 10


def test_undecodable_output() -> None:
    assert command.run(["printf", r"\377ok"]) == "\ufffdok"


def test_tail_keeps_the_end() -> None:
    text = "\n".join(map(str, range(1000)))
    rows = tail(text).splitlines()
    assert rows[0] == f"... {1000 - TAIL_LINES} lines before"
    assert rows[1:] == [str(number) for number in range(1000 - TAIL_LINES, 1000)]
    assert tail("a\nb\n") == "a\nb"


def test_unique_names() -> None:
    names: list[str] = []

    def take() -> None:
        names.extend(staging.unique_name() for _ in range(500))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(names)) == 2000
    assert all(re.fullmatch(rf"{os.getpid()}(-[0-9a-f]{{8}}){{3}}", name) for name in names)


def test_who_is_abandoned(home: Path) -> None:
    mine = home / staging.unique_name()
    mine.mkdir()
    assert not staging.is_abandoned(mine)
    script = "from ascendkit.jit import staging; print(staging.unique_name())"
    child = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    dead = home / child.stdout.strip()
    dead.mkdir()
    assert staging.is_abandoned(dead)
    assert staging.is_abandoned(dead.with_name(dead.name + "-evicted"))


def test_a_reused_process_id_is_not_the_maker(home: Path) -> None:
    pid, machine, _, unique = staging.unique_name().split("-")
    assert staging.is_abandoned(home / f"{pid}-{machine}-{'0' * 8}-{unique}")


@pytest.mark.parametrize("name", ["junk", f"1-{'0' * 8}-{'0' * 8}-{'0' * 8}"])
def test_other_machines_get_a_day(home: Path, name: str) -> None:
    (home / name).mkdir()
    assert not staging.is_abandoned(home / name)
    os.utime(home / name, (time.time() - 90_000,) * 2)
    assert staging.is_abandoned(home / name)

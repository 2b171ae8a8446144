"""Threads and forks: the interpreter stays free, one thread compiles, children work."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from ascendkit.jit import CompileError, HostBackend, HostLaunchOptions, lock

from .conftest import Make, entries, leftovers
from .fakes import FakeCompiler
from .test_memory import together

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")

BARRIER = 'touch "$here/inside"; while [ ! -e "$here/open" ]; do sleep 0.01; done; make'


def wait_for(fake: FakeCompiler) -> None:
    deadline = time.monotonic() + 30
    while not (fake.folder / "inside").exists():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_the_interpreter_is_free_while_compiling(make: Make, fake: FakeCompiler) -> None:
    """The compiler waits for a file that this thread makes: it could not, if it were locked out."""
    fake.act(BARRIER)
    runtime = make()
    worker = threading.Thread(target=lambda: runtime.compile("k", "x"))
    worker.start()
    wait_for(fake)
    steps = 0
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        steps += 1
    assert worker.is_alive()
    assert steps > 1000
    (fake.folder / "open").touch()
    worker.join(30)
    assert runtime.compile("k", "x").loaded


def test_two_threads_one_key(make: Make, fake: FakeCompiler) -> None:
    fake.act("sleep 0.1; make")
    runtime = make()
    kernels = together(2, lambda: runtime.compile("k", "x"))
    assert kernels[0] is kernels[1]
    assert fake.runs == 1


def test_two_runtimes_of_one_process_share_the_work(make: Make, fake: FakeCompiler) -> None:
    fake.act("sleep 0.1; make")
    runtimes = iter([make(), make(), make(), make()])
    kernels = together(4, lambda: next(runtimes).compile("k", "x"))
    assert len({id(kernel) for kernel in kernels}) == 4
    assert len({kernel.path for kernel in kernels}) == 1
    assert fake.runs == 1


def test_all_waiters_get_the_error(make: Make, fake: FakeCompiler) -> None:
    fake.act("sleep 0.1; exit 5")
    runtime = make()
    errors = together(6, lambda: runtime.compile("k", "x"))
    assert all(isinstance(error, CompileError) for error in errors)
    assert fake.runs == 1
    fake.behave()
    assert runtime.compile("k", "x").loaded


def test_other_keys_compile_meanwhile(make: Make, fake: FakeCompiler) -> None:
    fake.act(f'case "$(cat kernel.cpp)" in slow) {BARRIER};; *) make;; esac')
    runtime = make()
    worker = threading.Thread(target=lambda: runtime.compile("k", "slow"))
    worker.start()
    wait_for(fake)
    assert runtime.compile("k", "quick").loaded
    (fake.folder / "open").touch()
    worker.join(30)
    assert not worker.is_alive()


def in_child(work) -> int:
    """The exit status of ``work`` run in a forked child; 99 if it raised, 98 if it hung."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = int(work())
        finally:
            os._exit(code)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return 98


def test_fork_after_use(real: Make) -> None:
    runtime = real()
    kernel = runtime.compile("k", "ASCENDKIT_KERNEL int f() { return 3; }")

    def child() -> int:
        again = runtime.compile("k", "ASCENDKIT_KERNEL int f() { return 3; }")
        other = runtime.compile("l", "ASCENDKIT_KERNEL int f() { return 4; }")
        return kernel() + again() + other()

    assert [in_child(child) for _ in range(3)] == [10, 10, 10]
    assert kernel() == 3


def test_fork_before_use(real: Make) -> None:
    runtime = real()
    assert in_child(lambda: runtime.compile("k", "ASCENDKIT_KERNEL int f() { return 7; }")()) == 7


def test_fork_while_a_thread_compiles(make: Make, fake: FakeCompiler) -> None:
    """The child has neither the thread nor its locks, and must not wait for either."""
    fake.act(BARRIER)
    runtime = make(environ={"T_JIT_LOCK_TIMEOUT": "1"})
    worker = threading.Thread(target=lambda: runtime.compile("k", "x"))
    worker.start()
    wait_for(fake)

    def child() -> int:
        held = len(lock._held)
        other = runtime.compile("k", "other").loaded
        same = runtime.compile("k", "x").loaded
        return 0 if held == 0 and other and same else 1

    fake.act("make")
    assert in_child(child) == 0
    (fake.folder / "open").touch()
    worker.join(30)
    assert not worker.is_alive()
    assert runtime.compile("k", "x").loaded


def test_a_childs_copy_of_the_lock_dies_with_the_parents(make: Make, fake: FakeCompiler) -> None:
    """A child that outlives a killed writer does not keep its lock."""
    runtime = make()
    path = runtime.disk.lock_path("k.0")
    script = f"""
import os, signal, sys, time
from pathlib import Path
from ascendkit.jit import lock
fd = lock._try(Path({str(path)!r}))
assert fd is not None
child = os.fork()
if child == 0:
    print(os.getpid(), flush=True)
    time.sleep(60)
time.sleep(0.2)
os.kill(os.getpid(), signal.SIGKILL)
"""
    writer = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    survivor = int(writer.stdout.readline())
    writer.wait()
    try:
        start = time.monotonic()
        made = lock.once(path, lambda: False, lambda _: None, lambda: "built", timeout_s=20)
        assert (made, time.monotonic() - start < 5) == ("built", True)
    finally:
        os.kill(survivor, 9)
        writer.stdout.close()


def test_waiting_has_an_end(make: Make, fake: FakeCompiler) -> None:
    """A builder that hangs does not hang others for ever: they build on their own."""
    fake.act(f'[ -e "$here/inside" ] || {{ {BARRIER}; exit; }}; make')
    stuck = make()
    worker = threading.Thread(target=lambda: stuck.compile("k", "x"))
    worker.start()
    wait_for(fake)
    hasty = make(environ={"T_JIT_LOCK_TIMEOUT": "0"})
    assert hasty.compile("k", "x").loaded
    (fake.folder / "open").touch()
    worker.join(30)
    assert fake.runs == 2
    assert len(entries(stuck)) == 1
    assert leftovers(stuck) == []


def test_file_systems_without_locks(
    make: Make, fake: FakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int, how: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    assert make().compile("k", "x").loaded
    assert fake.runs == 1


def test_lock_files_do_not_pile_up(make: Make) -> None:
    runtime = make()
    for number in range(20):
        runtime.compile("k", f"int x = {number};")
    assert leftovers(runtime) == []


def test_forty_threads_take_turns(make: Make) -> None:
    """Mutual exclusion holds although each holder removes the file it locked."""
    path = make().disk.lock_path("k.0")
    inside, most = [0], [0]

    def build() -> int:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.0005)
        inside[0] -= 1
        return 1

    def turn() -> None:
        for _ in range(5):
            lock.once(path, lambda: False, lambda _: None, build, timeout_s=60)

    assert together(40, turn) == [None] * 40
    assert most[0] == 1
    assert not path.exists()


def test_launches_from_many_threads(real: Make) -> None:
    import numpy as np

    runtime = real()
    source = "ASCENDKIT_KERNEL void f(unsigned b, unsigned, int* out) { out[b] = 1; }"
    kernel = runtime.compile("k", source)

    def launch() -> int:
        out = np.zeros(64, dtype=np.int32)
        runtime.launch(kernel, HostLaunchOptions(num_blocks=64, num_threads=2), out)
        return int(out.sum())

    assert together(8, launch) == [64] * 8
    assert isinstance(runtime.backend, HostBackend)

"""Compiling many kernels in worker processes, remembering them, and warming up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ascendkit.jit import CompileError, HostOptions, JitError, history
from ascendkit.jit.request import Request

from .conftest import Make, entries, leftovers
from .fakes import FakeCompiler


def kernels(count: int) -> list[tuple[str, str]]:
    return [(f"k{n}", f"int x = {n};") for n in range(count)]


def test_many_at_once(make: Make, fake: FakeCompiler) -> None:
    runtime = make()
    runtime.compile("k1", "int x = 1;")
    wanted = [*kernels(9), ("k2", "int x = 2;"), ("k2", "int x = 2;", HostOptions(standard=23))]
    folders = runtime.par_compile(wanted, workers=3)
    assert [folder.name.partition(".")[0] for folder in folders] == [tag for tag, *_ in wanted]
    assert folders[2] == folders[9] != folders[10]
    assert fake.runs == 10
    assert runtime.par_compile(wanted) == folders
    assert fake.runs == 10
    for folder, (tag, source, *_) in zip(folders, wanted):
        assert (folder / "kernel.cpp").read_text() == source, tag
    assert leftovers(runtime) == []


def test_nothing_to_do(make: Make) -> None:
    assert make().par_compile([]) == []
    with pytest.raises(ValueError, match=r"workers: got 0, wanted at least 1"):
        make().par_compile(kernels(1), workers=0)


def test_all_good_ones_are_made_before_the_bad_are_told(make: Make, fake: FakeCompiler) -> None:
    fake.act('case "$(cat kernel.cpp)" in *bad*) echo broken; exit 3;; *) make;; esac')
    runtime = make()
    wanted = [("a", "bad 1"), *kernels(4), ("b", "bad 2")]
    with pytest.raises(ExceptionGroup, match=r"2 of 6 kernels did not compile") as caught:
        runtime.par_compile(wanted, workers=2)
    errors = caught.value.exceptions
    assert all(isinstance(error, CompileError) for error in errors)
    assert [error.kernel for error in errors] == ["a", "b"]
    assert "exit code 3" in str(errors[0])
    assert "broken" in errors[0].output
    assert len(entries(runtime)) == 4


def test_bad_input_is_refused_before_anything_runs(make: Make, fake: FakeCompiler) -> None:
    with pytest.raises(ValueError, match=r"cache tag"):
        make().par_compile([*kernels(2), ("no good", "x")])
    assert fake.runs == 0


def test_a_worker_that_dies_costs_one_kernel(make: Make, fake: FakeCompiler) -> None:
    fake.act('case "$(cat kernel.cpp)" in *die*) kill -9 $PPID; sleep 1;; *) make;; esac')
    runtime = make()
    with pytest.raises(ExceptionGroup) as caught:
        runtime.par_compile([("a", "die"), *kernels(5)], workers=1)
    assert [type(error) for error in caught.value.exceptions] == [JitError]
    assert "ended with status -9" in str(caught.value.exceptions[0])
    assert len(entries(runtime)) == 5


def test_under_a_main_module_without_a_guard(home: Path, fake: FakeCompiler) -> None:
    """Workers do not run the caller's script again, as spawned processes of the library would."""
    script = home / "main.py"
    script.write_text(f"""
import os
from ascendkit.jit import Config, HostBackend, Runtime
print("once")
environ = {{"PATH": os.environ["PATH"], "T_JIT_CACHE_DIR": {str(home / "cache root")!r}}}
runtime = Runtime(HostBackend({str(fake.path)!r}), Config("/", "T"), environ=environ)
print(len(runtime.par_compile([("k", f"int x = {{n}};") for n in range(4)], workers=2)))
""")
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.stdout, done.stderr) == ("once\n4\n", "")
    assert fake.runs == 4


def test_a_backend_nobody_else_can_make(make: Make) -> None:
    from ascendkit.jit import HostBackend

    class Local(HostBackend):
        pass

    runtime = make(backend=Local(make().backend.compiler))
    with pytest.raises(ValueError, match=r"another process can import"):
        runtime.par_compile(kernels(2))
    assert runtime.compile("k", "x").loaded


def test_requests_survive_a_round_trip(make: Make) -> None:
    runtime = make(
        extra_signature="s\n", include_dirs=["/é"], include_prefixes=["p/"], quoted_includes="track"
    )
    options = runtime.effective(HostOptions(extra_flags=["-D'x'=\"编\""], link_inputs=["/a b.o"]))
    request = Request(runtime.backend, runtime.config, "k", 'int x; // é\n"', options)
    line = request.dump()
    assert "\n" not in line
    again = Request.parse(line)
    assert (again.config, again.tag, again.source) == (runtime.config, "k", request.source)
    assert (again.options, again.backend.compiler) == (options, runtime.backend.compiler)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "x",
        "[]",
        "{}",
        '{"backend": "no.such:Thing"}',
        '{"backend": "os:path"}',
    ],
)
def test_what_is_no_request(line: str) -> None:
    with pytest.raises(ValueError, match=r"not a compile request"):
        Request.parse(line)


def test_what_was_compiled_is_remembered_once(make: Make) -> None:
    runtime = make()
    root = runtime.disk.roots[0]
    for _ in range(2):
        runtime.compile("k", "int x;")
        runtime.disk.evict(runtime.compile("k", "int x;").path.parent)
        runtime = make()
    remembered = list(history.requests(root))
    assert len(remembered) == 1
    assert remembered[0][1].source == "int x;"
    (remembered[0][0].parent / "junk.json").write_text("{")
    kinds = {type(request) for _, request in history.requests(root)}
    assert kinds == {Request, ValueError}


def test_workers_say_nothing_on_our_output(
    make: Make, fake: FakeCompiler, capfd: pytest.CaptureFixture[str]
) -> None:
    make(environ={"T_JIT_PRINT_COMPILER_COMMAND": "1"}).par_compile(kernels(2), workers=1)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert json.dumps(captured.err).count("kernel.cpp") == 2


INTERRUPTED = """
import os, signal, sys, threading, time
from ascendkit.jit import Config, HostBackend, Runtime
# A shell starts background jobs with SIGINT ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
environ = {"PATH": os.environ["PATH"], "T_JIT_CACHE_DIR": sys.argv[2]}
runtime = Runtime(HostBackend(sys.argv[1]), Config("/", "T"), environ=environ)
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    runtime.par_compile([("k", f"int x = {n};") for n in range(40)], workers=2)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_starts_nothing_new(home: Path, fake: FakeCompiler) -> None:
    fake.act("sleep 0.2; make")
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(fake.path), str(home / "cache root")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=60,
    )
    assert done.stdout == "interrupted\n", done.stderr
    assert fake.runs < 30

"""Kill a writer with -9 at chosen points, recover, and look at what is left; see test_killed.py.

A point is a number of Python lines executed since the writer began, in our code or the library's:
each place in a build is as likely as it is long, and a seed repeats the run exactly. The process
that does this forks its writers, so that 200 of them cost seconds.
"""

import json
import os
import random
import signal
import sys
from pathlib import Path

from ascendkit.jit import Config, HostBackend, Runtime


def runtime_at(order: dict) -> Runtime:
    environ = {"PATH": os.environ["PATH"], "T_JIT_CACHE_DIR": order["root"]}
    return Runtime(HostBackend(order["compiler"]), Config("/", "T"), environ=environ)


def write(order: dict, source: str, point: int | None) -> int:
    """Fork a writer that is killed at line ``point``; returns lines or the negative signal."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        lines = 0

        def trace(frame, event, argument):
            nonlocal lines
            if event == "line":
                lines += 1
                if lines == point:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        runtime = runtime_at(order)
        sys.settrace(trace)
        try:
            runtime.compile_without_load("k", source)
        finally:
            sys.settrace(None)
            os.write(send, str(lines).encode())
            os._exit(0)
    os.close(send)
    answer = os.read(receive, 100)
    os.close(receive)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code else int(answer)


def main() -> None:
    order = json.loads(sys.argv[1])
    draw = random.Random(order["seed"])
    # Once for real, so that imports made on the way do not count as lines of the writer.
    runtime_at(order).compile("k", "int warm;")
    total = write(order, "int measure;", None)
    report = {"total": total, "killed": 0, "committed": 0, "halves": 0, "wrong": []}
    template = Path(order["template"]).read_bytes()
    number = 0
    while report["killed"] < order["points"]:
        number += 1
        source = f"int number_{number};"
        point = draw.randrange(1, total + 1)
        report["killed"] += write(order, source, point) == -signal.SIGKILL
        root = Path(order["root"])
        report["halves"] += any((root / "tmp").iterdir())
        reader = runtime_at(order)
        name = f"k.{reader.cache_key(source)}"
        final = root / "cache" / name
        sound = reader.disk.lookup(name) is not None
        report["committed"] += sound
        half = final.exists() and not sound
        kernel = reader.compile("k", source)
        if half or kernel.path.read_bytes() != template + source.encode():
            report["wrong"].append([number, point, half])
    print(json.dumps(report))


main()

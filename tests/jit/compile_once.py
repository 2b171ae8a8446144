"""A cold process that compiles what it is told; started by the tests, many at once.

Reads one JSON object from the command line: compiler, root, jobs [[tag, source], ...], and a file
to wait for, so that all processes start together. Writes what it got as one JSON line.
"""

import json
import os
import sys
import time
from hashlib import sha256
from pathlib import Path

from ascendkit.jit import Config, HostBackend, HostLaunchOptions, Runtime


def main() -> None:
    order = json.loads(sys.argv[1])
    environ = {"PATH": os.environ["PATH"], "T_JIT_CACHE_DIR": order["root"]}
    runtime = Runtime(HostBackend(order["compiler"]), Config("/", "T"), environ=environ)
    Path(order["ready"], str(os.getpid())).touch()
    while not os.path.exists(order["go"]):
        time.sleep(0.001)
    answers = []
    for tag, source in order["jobs"]:
        kernel = runtime.compile(tag, source)
        runtime.launch(kernel, HostLaunchOptions(num_blocks=1), None)
        answers.append([kernel.name, sha256(kernel.path.read_bytes()).hexdigest()])
    print(json.dumps(answers))


main()

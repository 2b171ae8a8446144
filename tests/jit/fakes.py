"""Stand-ins for compilers: shell scripts that answer in a millisecond and count their runs.

A fake's output is a real shared object with one kernel, followed by the source text, so that it
loads and yet differs by source. What it does beyond that is decided by files beside it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

GCC_BANNER = """Using built-in specs.
Target: x86_64-linux-gnu
Configured with: ../src/configure --fake
gcc version 12.2.0 (Fake 12.2.0-1)"""

TEMPLATE = r"""
extern "C" __attribute__((used, visibility("default"), section("ascendkit_kernel")))
void fill(unsigned block, unsigned blocks, int* out) { if (out) out[block] = 100 * blocks + block; }
"""

SCRIPT = r"""#!/bin/sh
PATH="$PATH:/usr/bin:/bin"
here="${0%/*}"
if [ "$1" = "-v" ]; then
  echo v >> "$here/asked"
  cat "$here/banner"
  exit 0
fi
echo "$$ $*" >> "$here/runs"
out=
for word in "$@"; do
  [ "$out" = next ] && out="$word" && break
  [ "$word" = "-o" ] && out=next
done
make() { cat "$here/template.so" kernel.cpp > "$out"; }
if [ -e "$here/act" ]; then . "$here/act"; else make; fi
"""


class FakeCompiler:
    """A compiler below ``folder``; give ``path`` to the runtime."""

    def __init__(self, folder: Path, banner: str = GCC_BANNER) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.path = folder / "fake g++"
        self.path.write_text(SCRIPT)
        self.path.chmod(0o755)
        (folder / "banner").write_text(banner + "\n")
        (folder / "template.so").write_bytes(template().read_bytes())

    @property
    def runs(self) -> int:
        """Compilations so far, all processes together."""
        return self._lines("runs")

    @property
    def asked(self) -> int:
        """Times the version was asked for."""
        return self._lines("asked")

    def act(self, script: str) -> None:
        """Shell text to run for a compilation; ``make`` in it does the normal work."""
        (self.folder / "act").write_text(script + "\n")

    def behave(self) -> None:
        """Back to normal."""
        (self.folder / "act").unlink(missing_ok=True)

    def _lines(self, name: str) -> int:
        path = self.folder / name
        return len(path.read_text().splitlines()) if path.exists() else 0


def template() -> Path:
    """A shared object with one kernel, made once a session by the real compiler."""
    folder = Path(os.environ["JIT_TEST_SCRATCH"])
    made = folder / "template.so"
    if not made.exists():
        source = folder / "template.cpp"
        source.write_text(TEMPLATE)
        part = folder / f"template.{os.getpid()}.so"
        command = ["g++", "-shared", "-fPIC", "-O1", str(source), "-o", str(part)]
        subprocess.run(command, check=True)
        os.replace(part, made)
    return made

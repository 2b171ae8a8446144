"""torch-npu is optional: never imported early, never fatal, and its absence is explained.

A made-up module shows each way it can behave; the real wheel, where `make test` could fetch it,
shows what it does on a machine without CANN.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from tests.house.helpers import python

pytest.importorskip("torch", reason="needs torch: pip install -e '.[torch]'")

LIBRARY = "libhccl.so"
ENTRY_POINT = "[torch.backends]\ntorch_npu = torch_npu:_autoload\n"
PROBE = "from ascendkit.platform import available; print(available('ascend'))"
REAL = Path(sys.prefix, "npu")

WORKING = """
import types, torch
npu = types.ModuleType("torch.npu")
npu.is_available = lambda: {visible}
npu.device_count = lambda: 2
npu.get_device_name = lambda i=0: "Ascend950PR_9579"
torch.npu = npu
def _autoload(): pass
"""


class Fake:
    """A folder with a ``torch_npu`` that does what its text says, and a CANN library or none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, text: str, cann: bool) -> dict[str, str]:
        package = self.folder / "torch_npu"
        package.mkdir(exist_ok=True)
        mark = f"open({str(self.folder / 'imported')!r}, 'w').close()\n"
        (package / "__init__.py").write_text(mark + text)
        info = self.folder / "torch_npu-2.13.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-npu\nVersion: 2.13.0\n")
        (info / "entry_points.txt").write_text(ENTRY_POINT)
        if cann:
            (self.folder / LIBRARY).touch()
        return {"PYTHONPATH": str(self.folder), "LD_LIBRARY_PATH": str(self.folder)}

    @property
    def imported(self) -> bool:
        return (self.folder / "imported").exists()


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path)


def test_a_working_npu_is_found_and_named(fake: Fake) -> None:
    env = fake(WORKING.format(visible=True), cann=True)
    assert "ok=True" in python("-c", PROBE, env=env).stdout
    shown = json.loads(python("-m", "ascendkit", "doctor", "output=json", env=env).stdout)
    devices = [(d["device"], d["architecture"]) for d in shown["devices"]]
    assert devices.count(("Ascend950PR_9579", "dav-3510")) == 2


def test_an_invisible_npu_is_said_to_be_invisible(fake: Fake) -> None:
    env = fake(WORKING.format(visible=False), cann=True)
    assert "no NPU is visible" in python("-c", PROBE, env=env).stdout


@pytest.mark.parametrize("error", ["ImportError", "OSError", "RuntimeError", "AttributeError"])
def test_a_failing_import_is_a_reason_not_a_crash(fake: Fake, error: str) -> None:
    env = fake(f"raise {error}('first line\\nsecond line')", cann=True)
    env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    code = f"{PROBE}\n{PROBE}\nprint(available('reference'), available('cuda').reason)"
    done = python("-c", code, env=env)
    assert done.returncode == 0, done.stderr
    first, again, others = done.stdout.splitlines()
    assert f"torch_npu does not load: {error}: first line" in first
    assert again == first, "a second look must not hide the first reason"
    assert "ok=True" in others


def test_without_cann_it_is_not_even_imported(fake: Fake) -> None:
    env = fake(WORKING.format(visible=True), cann=False)
    done = python("-c", PROBE, env=env)
    assert "CANN is not" in done.stdout and LIBRARY in done.stdout
    assert not fake.imported


def test_nothing_imports_it_early(fake: Fake) -> None:
    env = fake("raise SystemExit('imported too early')", cann=True)
    code = """
import ascendkit, importlib
from ascendkit.platform import available
for name in (*ascendkit.components(), *ascendkit.ops()):
    importlib.import_module(name)
"""
    done = python("-c", code, env=env)
    assert done.returncode == 0, done.stderr
    assert not fake.imported


def test_torch_survives_it_without_cann(fake: Fake) -> None:
    env = fake("raise ImportError('no CANN')", cann=False)
    assert "torch_npu" in python("-c", "import torch", env=env).stderr, "nothing to survive"
    done = python("-c", "import ascendkit, torch; print(torch.ones(2).sum().item())", env=env)
    assert done.stdout == "2.0\n", done.stderr


@pytest.mark.parametrize("cann, autoload", [(True, None), (False, "1"), (False, "0")])
def test_what_would_work_or_was_chosen_is_left_alone(fake: Fake, cann: bool, autoload) -> None:
    env = fake(WORKING.format(visible=True), cann=cann)
    if autoload:
        env["TORCH_DEVICE_BACKEND_AUTOLOAD"] = autoload
    code = "import os, ascendkit; print(os.environ.get('TORCH_DEVICE_BACKEND_AUTOLOAD'))"
    assert python("-c", code, env=env).stdout == f"{autoload}\n"


@pytest.mark.skipif(
    not (REAL / "torch_npu").is_dir(), reason="needs the torch-npu wheel: `make test` fetches it"
)
@pytest.mark.skipif(os.path.exists("/dev/davinci_manager"), reason="this machine has an NPU")
class TestRealWheelWithoutCann:
    """torch-npu 2.13.0 as published, on a machine that has no CANN."""

    env: ClassVar = {"PYTHONPATH": str(REAL)}

    def test_torch_alone_fails_and_with_us_it_works(self) -> None:
        assert "torch_npu" in python("-c", "import torch", env=self.env).stderr
        done = python(
            "-c", "import ascendkit, torch; print(torch.ones(2).sum().item())", env=self.env
        )
        assert done.stdout == "2.0\n", done.stderr

    def test_every_platform_gives_its_reason(self) -> None:
        code = """
from ascendkit.platform import PLATFORMS, available
print({name: available(name).reason for name in PLATFORMS})
"""
        done = python("-c", code, env=self.env)
        assert done.returncode == 0, done.stderr
        reasons = eval(done.stdout)
        assert "CANN is not" in reasons["ascend"]
        assert reasons["reference"] == ""
        assert "TORCH_LIBRARY" not in reasons["cuda"]

    def test_a_broken_cann_is_a_reason_too(self, tmp_path: Path) -> None:
        (tmp_path / LIBRARY).write_bytes(b"not a library")
        env = {**self.env, "LD_LIBRARY_PATH": str(tmp_path), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        done = python("-c", PROBE, env=env)
        assert done.returncode == 0, done.stderr
        assert "torch_npu does not load" in done.stdout

    def test_doctor_answers(self) -> None:
        done = python("-m", "ascendkit", "doctor", env=self.env)
        assert done.returncode == 0, done.stderr
        assert "CANN is not" in done.stdout

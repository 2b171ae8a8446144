"""The checkout stays clean: sizes, words, paths, and commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ascendkit.__main__ import commands
from tests.house.helpers import ROOT, tracked

MAX_LINES = 600
CODE = ("*.py", "*.h", "*.hpp", "*.cpp", "*.cc", "*.cu", "Makefile", "*.toml")
TEXT = (*CODE, "*.md", "*.yaml", "*.yml", "*.txt", ".ci/run", "*.sh")

# Each pattern is spelt so that it does not find itself.
FORBIDDEN = {
    "a path of one machine": r"(?<![\w./~-])/(?:work|farm|opt/dev|root|home)/",
    "a literal temporary path": r"""["'(= ]/tm[p]/""",
    "a registry's host": r"\bpyp[i]\.org|pythonhoste[d]\.org|index\.cratesi[o]|npmjs\.co[m]",
    "an index of wheels": r"download\.pytorc[h]\.org",
    "how the project is worked on": r"(?i)\bsub-?agen[t]s?\b|\bthis sessio[n]\b",
    "a number of our tracker": r"(?i)\bour issue #?\d+|\bissue \d+ (?:item|asks|says)",
}


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_no_file_of_code_is_too_long() -> None:
    long = {str(p.relative_to(ROOT)): len(lines(p)) for p in tracked(*CODE)}
    assert not {p: n for p, n in long.items() if n > MAX_LINES}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in tracked(*TEXT)
        for number, line in enumerate(lines(path), 1)
        if pattern.search(line)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "see /wor" + "k/main",
        'open("/tm' + 'p/x")',
        "https://pyp" + "i.org/simple",
        "/home" + "/me/x",
    ],
)
def test_the_patterns_find_what_they_are_for(line: str) -> None:
    assert any(re.search(pattern, line) for pattern in FORBIDDEN.values())


def test_no_build_output_or_environment_is_tracked() -> None:
    bad = {".so", ".o", ".pyc", ".whl", ".egg-info"}
    assert not [p for p in tracked() if p.suffix in bad or ".venv" in p.parts]


def test_every_python_file_says_what_it_is_for() -> None:
    folders = ("ascendkit/*.py", "tests/*.py")
    dumb = [
        str(p.relative_to(ROOT))
        for p in tracked(*folders)
        if lines(p) and not re.match(r'[rR]?"""', p.read_text(encoding="utf-8"))
    ]
    assert not dumb


@pytest.mark.parametrize("page", ["README.md", "README.zh.md", "docs/index.md", "docs/tour.md"])
def test_commands_and_files_a_page_names_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M))
    # Only in code: "make sure" is prose.
    code = "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.S))
    for target in re.findall(r"\bmake ([a-z][a-z-]*)", code):
        assert target in targets, f"{page}: no `make {target}`"
    for name in re.findall(r"python -m ascendkit[. ]([a-z_]+)", code):
        assert name in commands(), f"{page}: no command {name!r}"
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        if not re.match(r"[a-z]+:", link):
            target = (ROOT / page).parent / link
            assert target.exists(), f"{page}: dead link {link}"


def test_the_tour_names_ten_files_that_exist() -> None:
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    steps = re.findall(r"^\d+\. `([^`]+)`:", text, re.M)
    assert len(steps) == 10
    assert len(set(steps)) == 10
    for step in steps:
        assert (ROOT / step).is_file(), step


def test_shell_of_ci_is_strict_and_calls_make() -> None:
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "set -euo pipefail" in text
    assert re.search(r"\bmake test\b", text) and re.search(r"\bmake -k lint\b", text)
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111

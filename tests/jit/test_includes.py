"""The include scanner and the digest of include graphs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ascendkit.jit import Config, IncludeError
from ascendkit.jit.bench import HEADERS, write_headers
from ascendkit.jit.includes import MAX_DEPTH, IncludeTracker, scan


def tracker(folder: Path, *more: Path, quoted: str = "reject") -> IncludeTracker:
    dirs = (folder, *more)
    return IncludeTracker(
        Config("/", "T", include_dirs=dirs, include_prefixes=["ak/"], quoted_includes=quoted)
    )


def put(folder: Path, name: str, text: str | bytes = "") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b"#include <a.h>", b"a.h"),
        (b" \t\v\f#\t include\f<a.h> // why", b"a.h"),
        (b"#include<a.h>", b"a.h"),
        (b"#include <a.h>\r", b"a.h"),
        (b"#include <a b/c.h>", b"a b/c.h"),
    ],
)
def test_directives(line: bytes, name: bytes) -> None:
    assert list(scan(b"x\n" + line + b"\ny", "s")) == [(b"<", name)]


@pytest.mark.parametrize(
    "line",
    [
        b"#include MACRO",
        b"# /**/ include <a.h>",
        b"#include /**/ <a.h>",
        b"include <a.h>",
        b"// #include <a.h>",
        b"#include \\\n<a.h>",
        b"#include_next <a.h>",
        b"x #include <a.h>",
        b"#define include <a.h>",
    ],
)
def test_what_is_no_directive(line: bytes) -> None:
    assert list(scan(line, "s")) == []


@pytest.mark.parametrize(
    "line",
    [b"#include < a.h>", b"#include <a.h >", b"#include <a.h", b"#include <>", b"#include <"],
)
def test_non_standard(line: bytes) -> None:
    with pytest.raises(IncludeError, match=r"non-standard include in s"):
        list(scan(line, "s"))


def test_quoted_is_refused_even_untracked(home: Path) -> None:
    with pytest.raises(IncludeError, match=r'non-standard include in the source: "x.h"'):
        tracker(home).digest(b'#include "x.h"')


def test_conditionals_and_comments_are_not_interpreted(home: Path) -> None:
    with pytest.raises(IncludeError, match=r"failed to open <ak/none.h>"):
        tracker(home).digest(b"#if 0\n#include <ak/none.h>\n#endif")
    with pytest.raises(IncludeError, match=r"failed to open <ak/none.h>"):
        tracker(home).digest(b"/*\n#include <ak/none.h>\n*/")


def test_first_folder_wins(home: Path) -> None:
    one, two = home / "1", home / "2"
    put(one, "ak/a.h", "1")
    put(two, "ak/a.h", "2")
    put(two, "ak/b.h", "b")
    source = b"#include <ak/a.h>\n#include <ak/b.h>"
    assert tracker(one, two).digest(source) != tracker(two, one).digest(source)
    put(two, "ak/a.h", "1")
    assert tracker(one, two).digest(source) == tracker(two, one).digest(source)


def test_order_and_repeats_count(home: Path) -> None:
    put(home, "ak/a.h", "a")
    put(home, "ak/b.h", "b")
    texts = [b"<ak/a.h>|<ak/b.h>", b"<ak/b.h>|<ak/a.h>", b"<ak/a.h>|<ak/a.h>|<ak/b.h>"]
    sources = [b"\n".join(b"#include " + p for p in text.split(b"|")) for text in texts]
    assert len({tracker(home).digest(source) for source in sources}) == 3


def test_untracked_headers_do_not_matter(home: Path) -> None:
    put(home, "ak/a.h", "#include <other/x.h>\n#include <vector>")
    before = tracker(home).digest(b"#include <ak/a.h>")
    put(home, "other/x.h", "#include <ak/none.h>")
    assert tracker(home).digest(b"#include <ak/a.h>") == before


def test_cycles(home: Path) -> None:
    put(home, "ak/a.h", "#include <ak/b.h>")
    put(home, "ak/b.h", "#include <ak/c.h>")
    put(home, "ak/c.h", "#include <ak/a.h>")
    it = tracker(home)
    for _ in range(2):
        with pytest.raises(IncludeError, match=r"circular include: .*a\.h -> .*b\.h -> .*c\.h"):
            it.digest(b"#include <ak/a.h>")
    put(home, "ak/c.h", "")
    assert it.digest(b"#include <ak/a.h>") == tracker(home).digest(b"#include <ak/a.h>")


def test_a_missing_header_may_appear(home: Path) -> None:
    it = tracker(home)
    put(home, "ak/a.h", "#include <ak/late.h>")
    with pytest.raises(IncludeError, match=r"<ak/late.h>, included by .*a\.h"):
        it.digest(b"#include <ak/a.h>")
    put(home, "ak/late.h", "x")
    it.digest(b"#include <ak/a.h>")


def test_headers_are_remembered_until_forgotten(home: Path) -> None:
    it = tracker(home)
    put(home, "ak/a.h", "1")
    before = it.digest(b"#include <ak/a.h>")
    put(home, "ak/a.h", "2")
    assert it.digest(b"#include <ak/a.h>") == before
    it.forget()
    assert it.digest(b"#include <ak/a.h>") != before


def test_binary_headers(home: Path) -> None:
    put(home, "ak/a.h", b"\0\xff\n#include <ak/b\xff.h>\n\0")
    Path(home, "ak").joinpath("b\udcff.h").write_text("x")
    before = tracker(home).digest(b"#include <ak/a.h>")
    Path(home, "ak").joinpath("b\udcff.h").write_text("y")
    assert tracker(home).digest(b"#include <ak/a.h>") != before


def test_deep_nesting_ends_in_words(home: Path) -> None:
    for index in range(MAX_DEPTH + 2):
        put(home, f"ak/{index}.h", f"#include <ak/{index + 1}.h>")
    put(home, f"ak/{MAX_DEPTH + 2}.h", "")
    with pytest.raises(IncludeError, match=f"deeper than {MAX_DEPTH}"):
        tracker(home).digest(b"#include <ak/0.h>")


def test_quoted_tracking_looks_beside_the_includer(home: Path) -> None:
    put(home, "ak/sub/a.h", '#include "b.h"\n#include "stdio.h"\n#include "ak/c.h"')
    put(home, "ak/sub/b.h", "1")
    put(home, "ak/c.h", "c")
    source = b"#include <ak/sub/a.h>"
    before = tracker(home, quoted="track").digest(source)
    put(home, "ak/sub/b.h", "2")
    after = tracker(home, quoted="track").digest(source)
    put(home, "ak/c.h", "d")
    assert len({before, after, tracker(home, quoted="track").digest(source)}) == 3


def test_sixty_four_headers(home: Path) -> None:
    """The digest of a graph is that of its contents: where it lies does not matter."""
    write_headers(home / "one", 200)
    config = {"include_prefixes": ["graph/"]}
    source = b"#include <graph/h0.h>"

    def digest(folder: Path) -> str:
        return IncludeTracker(Config("/", "T", include_dirs=[folder], **config)).digest(source)

    before = digest(home / "one")
    shutil.copytree(home / "one", home / "moved away")
    assert digest(home / "moved away") == before
    seen = {before}
    for index in range(HEADERS):
        path = home / "one" / "graph" / f"h{index}.h"
        old = path.read_bytes()
        path.write_bytes(old + b"//")
        seen.add(digest(home / "one"))
        path.write_bytes(old)
    assert len(seen) == HEADERS + 1
    assert digest(home / "one") == before

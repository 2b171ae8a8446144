"""The page of users' problems names tests that exist, and all that are named after a thread."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "user_problems.md"


def test_the_page_and_the_tests_name_each_other():
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    text = "\n".join(p.read_text() for p in HERE.glob("test_user_problems_*.py"))
    tests = re.findall(r'^def (test_\w+)\([^)]*\):\n    """(.*?)"""', text, re.M | re.S)
    of_threads = {name for name, doc in tests if re.match(r"[\w-]+ (PR )?\d+: ", doc, re.I)}
    assert len(named) > 15 and named <= set(re.findall(r"^def (test_\w+)", text, re.M))
    assert of_threads <= named, of_threads - named

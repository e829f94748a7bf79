"""The simulator's files, and its page docs/simulator.md: what it shows runs, and what it says is caught is caught."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from tests.support import defects_numba
from tests.support.defects import DEFECTS
from warpcourse.paths import COURSE
from warplab import simulator

PAGE = (COURSE / "docs" / "simulator.md").read_text(encoding="utf-8")


def test_the_examples_print_what_the_page_shows():
    parts = re.findall(r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", PAGE, re.S)
    assert len(parts) == 2
    scope: dict = {}
    for code, shown in parts:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, scope)
        assert printed.getvalue().rstrip() == shown.rstrip()


def test_what_the_page_says_is_caught():
    in_numba = {defect.name for defect in defects_numba.DEFECTS}
    for defect in DEFECTS:
        first = re.sub(r"0x[0-9a-f]+", "0x…", defect.message().splitlines()[0])
        tried = "tried" if defect.name in in_numba else ""
        assert f"| {defect.name} | `{defect.error.__name__}` | {first} | {tried} |" in PAGE
    table = PAGE.split("## What is caught")[1].split("\nRaces are")[0]
    assert table.count("\n| ") == len(DEFECTS) + 2


def test_the_head_of_the_package_names_every_file():
    package = Path(simulator.__file__).parent
    files = {path.stem for path in package.rglob("[a-z]*.py") if path.parent.name != "operations"}
    named = set(re.findall(r"\w+", simulator.__doc__))
    assert files - named == set()

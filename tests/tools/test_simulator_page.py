"""docs/simulator.md says what the code says."""

import re
from pathlib import Path

import pytest

from tools import simulator_page


@pytest.fixture(scope="module")
def page():
    return simulator_page.page()


def test_the_page_is_up_to_date(page):
    assert page == simulator_page.PAGE.read_text(encoding="utf-8"), "run: python -m tools.simulator_page"


def test_the_page_knows_every_instruction_once(page):
    rows = re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE)
    assert len(rows) == len(set(rows))
    for name in ("add", "cvt", "ld", "bar", "shfl", "mma", "atom", "wgmma", "cp", "tcgen05"):
        assert name in rows
    supported, refused = page.split("### Refused by name")
    assert "| `fma` |" in supported
    assert "| `tcgen05` |" in refused
    assert "| `wgmma` |" in supported
    assert "| `wgmma.mma_async.sp` |" in refused


def test_the_head_of_the_package_names_every_file():
    package = Path(simulator_page.simulator.__file__).parent
    files = {path.stem for path in package.rglob("[a-z]*.py") if path.parent.name != "operations"}
    named = set(re.findall(r"\w+", simulator_page.simulator.__doc__))
    assert files - named == set()


def test_every_file_of_the_package_can_be_read_at_one_sitting():
    package = Path(simulator_page.simulator.__file__).parent
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in package.rglob("*.py")}
    assert len(lines) > 60
    assert {path.name: count for path, count in lines.items() if count > 500} == {}

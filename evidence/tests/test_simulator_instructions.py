"""The page of PTX instructions says what the code says."""

import re

import pytest

from evidence.simulator import instructions


@pytest.fixture(scope="module")
def page():
    return instructions.page()


def test_the_page_is_up_to_date(page):
    assert page == instructions.PAGE.read_text(encoding="utf-8"), "run: python -m evidence.simulator.instructions"


def test_the_page_knows_every_instruction_once(page):
    rows = re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE)
    assert len(rows) == len(set(rows))
    for name in ("add", "cvt", "ld", "bar", "shfl", "mma", "atom", "wgmma", "cp", "tcgen05", "tcgen05.mma.sp"):
        assert name in rows
    supported, refused = page.split("## Refused by name")
    assert "| `fma` |" in supported
    assert "| `tcgen05` |" in supported
    assert "| `tcgen05.mma.sp` |" in refused
    assert "| `wgmma` |" in supported
    assert "| `wgmma.mma_async.sp` |" in refused

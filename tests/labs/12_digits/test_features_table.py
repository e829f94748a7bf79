"""The table of DIGITS 6's features: what it says is here is there, and what it says is not has a reason."""

from __future__ import annotations

import re

import pytest

from warpcourse.paths import COURSE

PAGE = COURSE / "docs" / "digits_features.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ") and not line.startswith(("| DIGITS 6", "| ---"))
]


def test_there_are_rows_of_each_kind():
    assert {row[1] for row in ROWS} == {"yes", "part", "no"}
    assert len(ROWS) > 70


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_row_is_whole_and_what_it_names_exists(row):
    assert len(row) == 3
    feature, _, where = row
    assert feature
    assert len(where) > 10
    for name in re.findall(r"`((?:digits|kernels|warplab)/[^`]+)`", where):
        assert (COURSE / name).exists(), f"{name} is not there"


def test_every_part_of_the_application_is_named():
    """A package that the table forgets is a feature that it forgets."""
    text = PAGE.read_text()
    for folder in ("data", "networks", "training", "tasks", "look", "deploy", "page"):
        assert f"`digits/{folder}/" in text

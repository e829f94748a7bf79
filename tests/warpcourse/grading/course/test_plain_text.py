"""Text that students chose, on terminals and in tables."""

from __future__ import annotations

import csv
import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpcourse.grading.course.plain_text import in_table, on_terminal

SEPARATORS = ",;\t|"
FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;pwned\x07", r"\x1b]0;pwned\x07"),
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("\x9b31m", r"\x9b31m"),
        ("a\rb\x08c", r"a\rb\x08c"),
        ("\u202eevil", r"\u202eevil"),
        ("half \ud800", r"half \ud800"),
        ("two\nlines, é, 日本", "two\nlines, é, 日本"),
    ],
)
def test_control_characters_are_shown_and_not_obeyed(text, shown):
    assert on_terminal(text) == shown


def test_a_line_of_the_summary_stays_one_line():
    assert on_terminal("ada\nbob: graded", lines=False) == r"ada\nbob: graded"


@given(st.text())
def test_no_text_controls_a_terminal(text):
    shown = on_terminal(text)
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in shown if c != "\n")
    shown.encode()


@pytest.mark.parametrize(
    "text", ["=1+1", "a;=1+1", "a,b; =1", "\t@x", "+1", 'a";"=1+1', "a|-1", "x\n=1", "\uff1d1+1", "a;\xa0=1", "'=1"]
)
def test_no_text_becomes_a_formula_in_any_locale(text):
    assert cells_with_formulas(in_table(text)) == []


@given(st.text(alphabet="=+-@;,|\"' \t\nab\xa0\uff1d"))
def test_no_random_text_becomes_a_formula(text):
    assert cells_with_formulas(in_table(text)) == []


def test_ordinary_text_stays():
    for text in ("ada-lovelace", "A result is wrong: 3 - 2, not 1; see a[0]", "x = y", "Müller", "1-2"):
        assert in_table(text) == text


def cells_with_formulas(text):
    """Return the cells that spreadsheets with these separators take for formulas, quotation marks obeyed or not."""
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL).writerow([text, "5"])
    found = []
    for separator in SEPARATORS:
        pieces = next(csv.reader([line.getvalue()], delimiter=separator)) + line.getvalue().split(separator)
        found += [piece for piece in pieces if piece.strip(' \t\xa0"\r\n').startswith(FORMULA)]
    return found

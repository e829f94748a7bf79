"""Fields for numbers: what is typed is taken as it is, or refused with a sentence; no other number takes its place."""

from __future__ import annotations

import pytest
from traitlets import TraitError

from digits.data.dataset import Dataset
from digits.files import DigitsError
from digits.page.elements import integer, real
from digits.page.page import Page
from digits.workspace import Workspace


def typed(field, text):
    """Type a text into the field, as the browser's message does."""
    field._line.set_state({"value": text})


@pytest.mark.parametrize(
    ("text", "number"), [("64", 64), (" 7 ", 7), ("+8", 8), ("1e3", 1000), ("2.0", 2), ("-5", -5), ("1.5E2", 150)]
)
def test_whole_numbers(text, number):
    field = integer("Width", 32, -10, 1024)
    typed(field, text)
    assert (field.value, type(field.value)) == (number, int)
    assert field._line.value == str(number)


@pytest.mark.parametrize(
    ("text", "number", "shown"),
    [("0.01", 0.01, "0.01"), (".5", 0.5, "0.5"), ("1e-5", 1e-5, "1e-05"), ("3", 3.0, "3"), ("5.", 5.0, "5")],
)
def test_numbers(text, number, shown):
    field = real("Rate", 0.1, 0, 1000)
    typed(field, text)
    assert (field.value, field._line.value) == (number, shown)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2.5", "Width: '2.5' is no whole number. Type a whole number from 1 to 1024."),
        ("1e9", "Width: '1e9' is too large"),
        ("0", "Width: '0' is too small"),
        ("-5", "too small"),
        ("", "Width: there is no number"),
        ("32px", "no number"),
        ("1_0", "no number"),
        ("٣", "no number"),
        ("nan", "no number"),
        ("inf", "no number"),
        ("1e999", "too large"),
        ("-1e999", "too small"),
        ("9" * 5000, "too large"),
        ("<b>1</b>", "no number"),
    ],
)
def test_what_is_no_such_number_is_refused_and_stays_in_sight(text, why):
    field, heard = integer("Width", 32, 1, 1024), []
    field.observe(heard.append, "value")
    typed(field, text)
    assert why in field.wrong
    assert 'role="alert"' in field._says.value
    assert "<b>" not in field._says.value
    assert field._says.layout.display is None
    assert field._line.value == text
    assert len(heard) == 1
    with pytest.raises(DigitsError, match="Width: "):
        _ = field.value
    typed(field, "32")
    assert (field.value, field.wrong, field._says.layout.display) == (32, "", "none")
    assert len(heard) == 2


def test_decimal_comma_is_no_thousandfold():
    field = real("Base learning rate", 0.001, 0, 1000)
    typed(field, "0,01")
    assert field.wrong == "Base learning rate: '0,01' has a comma. Write 0.01, or leave the comma out."


def test_setting_the_number_holds_it_between_the_limits_and_mends_the_field():
    field = integer("Number", 5, 0, 10)
    typed(field, "x")
    field.value = 5
    assert (field.value, field._line.value, field.wrong) == (5, "5", "")
    field.value = 99
    assert field.value == 10
    field.max = 3
    assert (field.value, field._line.value) == (3, "3")
    field.description = "Index"
    assert field._line.description == "Index"
    with pytest.raises(TraitError, match="a number"):
        field.value = "4"


def test_no_dataset_and_no_run_of_a_number_that_nobody_typed(tmp_path):
    panels = (("Data", "digits.page.data_panel", "DataPanel"), ("Solver", "digits.page.solver_panel", "SolverPanel"))
    page = Page(Workspace(tmp_path), panels, open_at="Data")
    form = page.panel("Data")._new
    typed(form._width, "2.5")
    form._make.click()
    assert "Size (pixels a side): &#x27;2.5&#x27; is no whole number" in page._status.value
    assert Dataset.list(page.workspace) == []
    page.open("Solver")
    solver = page.panel("Solver")
    typed(solver._controls["rate"], "0,01")
    assert "has a comma" in page.selected.solver_error
    typed(solver._controls["rate"], "0.01")
    assert (page.selected.solver_error, page.selected.solver["rate"]) == ("", 0.01)

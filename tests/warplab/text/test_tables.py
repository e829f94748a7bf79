"""Number formats, and tables in Markdown."""

from __future__ import annotations

import pytest

from warplab.text import tables


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0.00 s"),
        (3.76e-6, "3.76 us"),
        (1.165e-3, "1.17 ms"),
        (12.5, "12.5 s"),
        (2e-10, "0.20 ns"),
        (0.25, "250 ms"),
    ],
)
def test_durations(value, shown):
    assert tables.duration(value) == shown.replace("us", "\N{MICRO SIGN}s")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(12_582_912, "12.6 MB"), (999, "999 B"), (3.35e12, "3.35 TB"), (0, "0.00 B"), (1500, "1.50 kB")],
)
def test_quantities(value, shown):
    assert tables.quantity(value, "B") == shown


@pytest.mark.parametrize(
    ("dims", "shown"), [((256, 1, 1), "256"), ((16, 16, 1), "(16, 16)"), ((1, 1, 1), "1"), ((1, 1, 4), "(1, 1, 4)")]
)
def test_shapes(dims, shown):
    assert tables.shape(dims) == shown


def test_a_table_in_markdown():
    rows = [("a|b", 1), ("c", 2.5)]
    assert tables.markdown(("name", "value"), rows) == ("| name | value |\n| --- | --- |\n| a\\|b | 1 |\n| c | 2.5 |")
    assert tables.markdown(("name", "value"), [], numbers=True).splitlines()[1] == "| --- | ---: |"

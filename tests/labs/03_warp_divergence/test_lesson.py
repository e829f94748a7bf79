"""The numbers that lab 03's text quotes are those recorded."""

import nbformat
import pytest

from kernels.warp_divergence import recordings
from warpcourse.paths import COURSE

LESSON = COURSE / "notebooks" / "03_warp_divergence.ipynb"
VALUES = recordings.values()
LABEL = f"in the recording ({recordings.recorded('histogram_table').origin})"


def rates(table, **where):
    """GB/s of the rows that have these values, by kernel."""
    rows = [row for row in VALUES[table]["rows"] if all(row[key] == value for key, value in where.items())]
    return {row["name"]: row["gbps"] for row in rows}


def orders():
    found = {row["kernel"]: row["sequence"] for row in VALUES["order_of_sides"]}
    a, x, y, b, _ = found["ordered"]
    return (f"{LABEL} the order is {a} {x} **{y} {b}**",)


def flag():
    (value,) = {value for row in VALUES["order_of_sides"] if row["kernel"] == "handshake" for value in row["read"]}
    return (f"On the recorded H100 B read {value} here too",)


def tasks():
    row = {(row["group"], row["name"]): row for row in VALUES["task_times"]}
    plain, sorted_, queue = (row["Collatz", name] for name in ("neighbours", "sorted by length", "queue"))
    assert queue["seconds"] > sorted_["seconds"]
    thread, warp = (row["row sums", f"a {unit} per row"] for unit in ("thread", "warp"))
    assert round(warp["warp_efficiency"] / thread["warp_efficiency"]) == 8
    assert 0.72 < warp["seconds"] / thread["seconds"] < 0.78  # "a quarter off the time"
    saved = plain["seconds"] - sorted_["seconds"]
    return (
        f"I{LABEL[1:]} sorting takes Collatz from {plain['seconds'] * 1e6:.0f} to {sorted_['seconds'] * 1e6:.0f} µs",
        f"{plain['warp_efficiency']:.2f} to {sorted_['warp_efficiency']:.2f}",
        f"the sort itself takes {sorted_['sort_seconds'] * 1e6:.0f} of the {saved * 1e6:.0f} µs saved",
        f"an efficiency of {queue['warp_efficiency']:.3f} and is slower than the sorted run",
        "efficiency about eightfold and takes a quarter off the time",
    )


def histograms():
    skewed, uniform = (rates("histogram_table", data=data) for data in ("skewed", "uniform"))
    for rate in (skewed, uniform):
        assert rate["cuda_histogram_global"] < rate["cuda_histogram_matched"] < rate["cuda_histogram_shared"]
        assert rate["cuda_histogram_shared"] < rate["numba_histogram_shared"] < rate["cuda_histogram_vector"]
    assert 0.97 < skewed["cuda_histogram_columns"] / skewed["cuda_histogram_vector"] <= 1
    assert uniform["cuda_histogram_matched"] < 1.1 * uniform["cuda_histogram_global"]
    assert uniform["cuda_histogram_columns"] == max(uniform.values())
    return "gains nothing here", "On uniform data, where hardly any two lanes meet, it is best"


def selections():
    half = rates("selection_table", share=0.5)
    five = [rate for name, rate in half.items() if "append" in name]
    assert len(five) == 5
    assert max(five) < 1.05 * min(five)
    assert max(five) < min(rate for name, rate in half.items() if "append" not in name)
    return ("The five variants of `append`", "equally fast")


QUOTED = {
    "divergence-order-after": orders,
    "divergence-handshake-progress": flag,
    "divergence-times-after": tasks,
    "divergence-histogram-text": histograms,
    "divergence-selection-after": selections,
}


@pytest.mark.parametrize("cell", QUOTED)
def test_the_text_quotes_what_was_recorded(cell):
    text = next(c.source for c in nbformat.read(LESSON, as_version=4).cells if c.id == cell)
    for phrase in QUOTED[cell]():
        assert phrase in text

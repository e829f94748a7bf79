"""Counts from machine code against those that Nsight Compute read (`evidence.machine_code.compare`)."""

from __future__ import annotations

import dataclasses

import pytest

from evidence.machine_code import compare as machine_code
from evidence.machine_code.compare import CountedLaunch, Figures
from tools import ncu

ABOUT, ROWS = machine_code.load()


def test_every_recorded_launch_is_there_with_what_ncu_read():
    of = {(row.topic, row.launch): row for row in ROWS}
    recorded = {}
    for topic in machine_code.recorded_topics():
        present = {launch.name for launch in ncu.launches(topic)}
        for name, entry in ncu.recording(topic)["launches"].items():
            if name in present:
                recorded[topic, name] = entry["counters"]
    assert of.keys() == recorded.keys(), "run: python -m evidence.machine_code.compare"
    for key, counters in recorded.items():
        assert of[key].ncu.instructions == counters["warp_instructions"]
        assert of[key].ncu.branches == counters.get("branches", 0)


def test_the_launches_are_many():
    assert len(ROWS) > 600


@pytest.mark.parametrize(
    ("topic", "beginning", "launches"),
    [
        ("vector_multiply", "", 10),
        ("tensor_core", "wmma", 6),
        ("evidence.counters", "Numba: ", 9),
        ("evidence.counters", "row sums", 1),
        ("evidence.counters", "greatest", 1),
    ],
)
def test_figures_are_those_of_today(topic, beginning, launches):
    """A part of the launches, as all of them take long."""
    recorded = ncu.recording(topic)
    chosen = [launch for launch in ncu.launches(topic) if launch.name.startswith(beginning)][:launches]
    assert len(chosen) == launches
    of = {row.launch: row for row in ROWS if row.topic == topic}
    for launch in chosen:
        read = dict.fromkeys(recorded["counters"], 0) | recorded["launches"][launch.name]["counters"]
        found = machine_code.measured(topic, launch, read)
        saved = of[launch.name]
        for name, value in dataclasses.asdict(found.machine).items():
            assert value == pytest.approx(getattr(saved.machine, name), rel=1e-3, abs=0.01), (launch.name, name)


def test_instructions_are_close_to_those_that_ran():
    """As measured: a change that makes them worse must be seen."""
    off = [abs(row.off("machine")) for row in ROWS]
    assert sum(x <= machine_code.WITHIN for x in off) >= 0.98 * len(ROWS)
    assert sum(off) / len(off) <= 0.002
    assert sum(abs(row.points("machine")) <= machine_code.POINTS for row in ROWS) >= 0.99 * len(ROWS)
    assert sum(row.same_branches("machine") for row in ROWS) >= 0.965 * len(ROWS)
    assert max(abs(row.off("machine")) for row in ROWS if row.topic == "tensor_core") <= 0.001  # by PTX up to 64 %


def test_errors_are_shares_of_what_ncu_read():
    row = CountedLaunch("t", "l", Figures(100, 0.5, 4, 1), Figures(150, 0.75, 4, 0), Figures(99, 0.5, 4.2, 1))
    assert (row.off("ptx"), row.off("machine")) == pytest.approx((0.5, -0.01))
    assert row.points("ptx") == 0.25
    assert not row.same_branches("ptx")
    assert row.same_branches("machine")

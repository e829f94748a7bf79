"""What benchmarks share, as far as it can be tested without a GPU: statistics, tables, the last line, exit codes."""

import json
import os

import pytest

from warpcourse.bench import timing

ABOUT = {"device": "Some GPU", "date": "2001-02-03"}


def test_a_timing_is_the_median():
    taken = timing.Timing.of([3e-3, 1e-3, 10e-3])
    assert taken == timing.Timing(seconds=3e-3, fastest=1e-3, slowest=10e-3, runs=3)
    assert taken.bandwidth(3_000_000) == pytest.approx(1.0)


def test_a_timing_without_runs_is_an_error():
    with pytest.raises(ValueError, match="at least one run"):
        timing.Timing.of([])


def test_the_host_clock_counts_only_the_runs_after_the_warm_up():
    calls = []
    taken = timing.time_host(lambda: calls.append(1), runs=5, warmup=3)
    assert (len(calls), taken.runs) == (8, 5)
    assert 0 < taken.fastest <= taken.seconds <= taken.slowest


def test_a_table_is_aligned_and_marks_wrong_results():
    lines = timing.table(("kernel", "GB/s", "right"), [("a", 2785.4, True), ("longer", 0.92646, False)])
    assert [line.split() for line in lines.splitlines()] == [
        ["kernel", "GB/s", "right"],
        ["a", "2785", "yes"],
        ["longer", "0.9265", "NO"],
    ]
    assert len({len(line) for line in lines.splitlines()}) == 1, "the last column ends at the right edge"


def test_the_last_line_is_json_with_figures_device_and_date():
    line = timing.last_line("topic", {"gbps": {"a": 2785.4321}, "n": 2**28}, ABOUT)
    assert "\n" not in line
    assert json.loads(line) == {"benchmark": "topic", "figures": {"gbps": {"a": 2785.0}, "n": 2**28}} | ABOUT


def test_rounding_keeps_integers_and_text():
    assert timing.rounded({"a": (1.23456, 123456789, "x", None, True)}) == {"a": [1.235, 123456789, "x", None, True]}


def test_the_host_is_named():
    host = timing.host()
    assert host["cpu"]
    assert 1 <= host["cores"] <= os.cpu_count()

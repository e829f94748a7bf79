"""The simulator's counters against those that Nsight Compute read on a GPU (`make compare-ncu`)."""

import json
import shutil

import pytest

from tests.support.ncu_harness import check_measured, check_recorded
from tools import ncu, ncu_page
from warpcourse.bench.nsight_compute import ProfiledLaunch

# A lab whose kernels no machine with ncu has run yet lacks the file; `make compare-ncu` on one writes it.
TOPICS = [topic for topic in ncu.topics() if (ncu.folder(topic) / "ncu.json").exists()]
RECORDED = {topic: ncu.recording(topic) for topic in TOPICS}


@pytest.mark.parametrize("topic", TOPICS)
def test_counters_are_those_of_the_hardware(topic):
    """And the page says so. One test per topic, so that its launches run once."""
    check_recorded(topic)


@pytest.mark.parametrize("topic", sorted(set(ncu.topics()) - set(TOPICS)))
def test_a_lab_that_is_not_recorded_yet_can_be(topic):
    """That the simulator runs every launch, without a word of its checks."""
    for launch in ncu.launches(topic):
        assert ncu.simulated(launch)[ncu.EFFICIENCY] > 0


def test_the_recording_keeps_its_form():
    for topic in TOPICS:
        assert ncu.as_json(RECORDED[topic]) == (ncu.folder(topic) / "ncu.json").read_text()
        assert json.loads(ncu.as_json(RECORDED[topic])) == RECORDED[topic]


def test_counters_are_sums_of_metrics_without_zeros():
    names = ncu.metrics()
    metrics = list(dict.fromkeys(" + ".join(names.values()).split(" + ")))
    launch = ProfiledLaunch("k", "(1, 1, 1)", "(32, 1, 1)", {metric: float(k) for k, metric in enumerate(metrics)})
    expected = {name: sum(launch.metrics[m] for m in metric.split(" + ")) for name, metric in names.items()}
    assert any(" + " in metric for metric in names.values())
    assert ncu.counters(launch) == {name: number for name, number in expected.items() if number}
    assert 0 in expected.values()
    assert all(isinstance(ncu.counters(launch)[name], int) for name in ("global_load_sectors", "branches"))


@pytest.mark.parametrize(
    ("counter", "hardware", "simulator", "within", "holds"),
    [
        ("global_load_sectors", 100, 100, None, True),
        ("global_load_sectors", 100, 101, None, False),
        ("global_load_sectors", 100, 104, 0.05, True),
        ("global_load_sectors", 100, 94, 0.05, False),
        ("global_load_sectors", 0, 1, 0.05, False),
        ("warp_efficiency", 0.5, 0.519, None, True),
        ("warp_efficiency", 0.5, 0.479, None, False),
        ("warp_efficiency", 0.1, 0.06, 0.05, True),
        ("branches", 100, 200, None, True),
        ("branches", 100, 200, 0.5, False),
    ],
)
def test_what_holds(counter, hardware, simulator, within, holds):
    difference = None if within is None else ncu.Difference(counter, within, "because")
    comparison = ncu.Comparison("launch", counter, hardware, simulator, difference)
    assert comparison.holds is holds
    assert ("yes" if holds else "NO") in ncu.text([comparison])


@pytest.fixture
def made(monkeypatch):
    """Launches "a" and "b" of a topic, and what was recorded of them; counters that are 0 are left out."""
    because = ncu.Difference("global_load_bytes", 1.0, "because")
    table = [
        ncu.Launch(name, lambda: None, 4, 32, (), section=f"part {name}", differences=(because,)) for name in ("a", "b")
    ]
    monkeypatch.setattr(ncu, "launches", lambda topic: table)
    monkeypatch.setattr(ncu, "title", lambda topic: "a lab")
    read = {"global_load_sectors": 8, "threads_per_instruction": 16}
    entry = {"grid": [4, 1, 1], "block": [32, 1, 1], "counters": read}
    names = list(ncu.metrics())
    about = {"device": "Some GPU", "date": "today", "ncu": "1"}
    return about | {"counters": names, "launches": {"a": entry, "b": entry}}


def simulated(**counts):
    return lambda launch: dict.fromkeys(ncu.COMPARED, 0) | {"global_load_sectors": 8, "warp_efficiency": 0.5} | counts


def test_an_absent_counter_is_zero(made, monkeypatch):
    monkeypatch.setattr(ncu, "simulated", simulated())
    comparisons = ncu.compare("topic", made)
    assert len(comparisons) == 2 * (len(ncu.COMPARED) + 1)
    assert all(c.equal for c in comparisons)
    assert "## Differences\n\nNone.\n" in ncu_page.page("topic", made, comparisons)


def test_only_differences_are_listed_with_their_reasons(made, monkeypatch):
    monkeypatch.setattr(ncu, "simulated", simulated(global_load_bytes=32, branches=3, warp_efficiency=0.51))
    page = ncu_page.page("topic", made, ncu.compare("topic", made))
    assert "2 launches under `ncu` and in the simulator: of 6 counters 4 differ, 2 by more than is allowed;" in page
    for part in ("a", "b"):
        assert f"### part {part}" in page
        assert f"| {part} | global load bytes | 0 | 32 | 1 |" in page
        assert f"| {part} | warp efficiency | 50.0 % | 51.0 % |  |" in page
        assert f"| {part} | branches | 0 | 3 |  |" in page
    assert "\n\n1. because\n" in page
    assert f"| {part} | global load sectors" not in page


def test_what_is_newer_than_the_recording_is_said(made, monkeypatch):
    monkeypatch.setattr(ncu, "simulated", simulated())
    older = made | {"counters": [name for name in made["counters"] if name != "branches"]}
    older["launches"] = {"a": made["launches"]["a"]}
    assert ncu.unrecorded("topic", older) == (["b"], ["branches"])
    comparisons = ncu.compare("topic", older)
    assert {c.launch for c in comparisons} == {"a"}
    assert "branches" not in {c.counter for c in comparisons}
    assert "and so not compared: 1 launches, branches." in ncu_page.page("topic", older, comparisons)


def test_a_recording_of_other_launches_is_refused(made):
    with pytest.raises(ValueError, match="does not hold the launch 'a' as it is now"):
        ncu.compare("topic", made | {"launches": {}})


@pytest.mark.gpu
@pytest.mark.skipif(shutil.which("ncu") is None, reason="Nsight Compute (ncu) is not installed")
@pytest.mark.parametrize("topic", ncu.topics())
def test_ncu_counts_what_the_simulator_counts(topic):
    check_measured(topic)

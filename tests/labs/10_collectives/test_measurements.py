"""What is recorded: of measurements that exist, right outputs, shown by the benchmark's tables."""

import importlib

import numpy as np
import pytest

from kernels.collectives import measurements, model, recordings
from kernels.collectives.benchmark import BENCHMARK
from kernels.collectives.data_parallel_gpu import WAYS
from kernels.collectives.measurements import MEASUREMENTS
from warpcourse.bench.benchmark import correct
from warpcourse.bench.recordings import Measurement, MissingRecording

ring_readings = importlib.import_module("tests.labs.10_collectives.ring_readings")

RECORDED = recordings.load()


@pytest.mark.parametrize("key", RECORDED)
def test_recorded_outputs_were_right_and_on_enough_gpus(key):
    found = RECORDED[key]
    assert key in MEASUREMENTS
    assert correct(found.value)
    assert [run["ranks"] for run in found.value["runs"]] == [2, 4]
    assert found.machine["gpus"] == 4


@pytest.mark.parametrize("key", [key for key in BENCHMARK.tables if key in RECORDED])
def test_every_row_is_shown(key):
    value = RECORDED[key].value
    text = BENCHMARK.tables[key].text(value)
    rows = 0
    for run in value["runs"]:
        if key == "small_messages":  # engines side by side
            rows += len({(row["bytes"], row["graph"]) for row in run["rows"]})
        else:
            rows += len(run["rows"])
    assert len(text.splitlines()) == rows + 2 * 2 + 1  # headings and titles, a line between
    assert "NO" not in text.split()


def test_where_there_is_no_gpu_the_recording_is_given():
    if measurements.timing.gpu_count() < 2:
        found = measurements.measured("sgd")
        assert [(run.live, run.value["ranks"]) for run in found] == [(False, 2), (False, 4)]
        assert all({row["way"] for row in run.value["rows"]} == set(WAYS) for run in found)


def test_what_is_measured_here_takes_the_place_of_that_many_gpus(monkeypatch):
    monkeypatch.setattr(measurements.timing, "gpu_count", lambda: 3)
    here = Measurement({"runs": [{"ranks": k} for k in measurements._counts_here()]}, "This", "2001-02-03", live=True)
    monkeypatch.setattr(type(recordings), "measure", lambda self, key, function: here)
    runs = measurements.measured("sgd")
    assert [(run.live, run.value["ranks"]) for run in runs] == [(True, 2), (False, 4)]
    two, four = measurements.origin(runs).splitlines()
    assert two == "2 GPUs measured on This, 2001-02-03"
    assert four == f"4 GPUs {runs[1].label}"
    assert measurements.origin(runs[1:]) == runs[1].label
    with pytest.raises(MissingRecording, match="sgd was recorded on 2, 4 GPUs, not on 8"):
        measurements.recorded("sgd", 8)


@pytest.mark.parametrize(
    ("gpus", "here"), [(0, []), (1, []), (2, [2]), (3, [2]), (4, [2, 4]), (7, [2, 4]), (8, [2, 4, 8])]
)
def test_which_numbers_of_gpus_are_live(gpus, here, monkeypatch):
    monkeypatch.setattr(measurements.timing, "gpu_count", lambda: gpus)
    live = Measurement({"runs": [{"ranks": k} for k in measurements._counts_here()]}, "This", "2001-02-03", live=True)
    monkeypatch.setattr(type(recordings), "measure", lambda self, key, function: live)
    runs = measurements.measured("sgd")
    assert [run.value["ranks"] for run in runs if run.live] == here
    assert [run.value["ranks"] for run in runs] == sorted({2, 4, *here})


def test_a_recording_of_before_there_were_runs_is_as_none(monkeypatch):
    old = Measurement({"ranks": 2, "rows": []}, "That", "2001-02-03", live=False)
    monkeypatch.setattr(type(recordings), "recorded", lambda self, key: old)
    monkeypatch.setattr(measurements.timing, "gpu_count", lambda: 0)
    assert measurements.measured("sgd") == []
    with pytest.raises(MissingRecording, match="sgd was recorded on no number of GPUs, not on 4: run"):
        measurements.recorded("sgd", 4)


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_timeline_has_the_parts_of_a_step_in_order(ranks):
    value = measurements.recorded("sgd_timeline", ranks).value
    layers = len(measurements.TASK.sizes) - 1
    for way in ("one after another", "overlapped"):
        for rank in range(value["ranks"]):
            mine = [row for row in value[way] if row["rank"] == rank]
            computed = [row["what"] for row in mine if row["stream"] == "compute"]
            assert computed == ["forward", *(f"backward {layer}" for layer in reversed(range(layers))), "update"]
            begins = {row["what"]: row["begin"] for row in mine}
            ends = {row["what"]: row["end"] for row in mine}
            assert all(begins[f"sum {layer}"] >= ends[f"backward {layer}"] - 5e-6 for layer in range(layers))
            overlapped = begins[f"sum {layers - 1}"] < begins["backward 0"]
            assert overlapped == (way == "overlapped")


@pytest.mark.parametrize("engine", ["copies", "graph"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_the_model_fitted_to_two_points_predicts_the_recorded_curve(engine, ranks):
    seconds, n = ring_readings.curve(ranks, engine=engine), measurements.N
    assert set(seconds) == set(measurements.SLICES)
    link = ring_readings.fit(n, ranks, *((s, seconds[s]) for s in (8, 256)))
    for slices, found in seconds.items():
        assert model.ring_broadcast(n, ranks, slices, link) == pytest.approx(found, rel=0.05)


@pytest.mark.parametrize("ranks", [2, 4])
def test_small_messages_take_less_than_nccls(ranks):
    """Of this lab's two the faster, by size and way of launching; the figures are a recording's."""
    for nbytes in measurements.SMALL:
        for graph in (False, True):
            rows = measurements.recorded("small_messages", ranks).value["rows"]
            here = {row["engine"]: row["seconds"] for row in rows if (row["bytes"], row["graph"]) == (nbytes, graph)}
            assert min(here["one-shot"], here.get("two-shot", np.inf)) < here["NCCL"]


def test_the_page_on_libraries_has_the_recorded_figures():
    two, four = (measurements.recorded("all_reduce_table", ranks) for ranks in (2, 4))
    inside, without = (
        [f"{row['bus_gbps']:.0f}" for run in (two, four) for row in run.value["rows"] if row["engine"] == engine]
        for engine in (measurements.WINDOW, "NCCL")
    )
    page = " ".join((recordings.path.parent / "device_api.md").read_text().split())
    assert f"moved {inside[0]} GB/s on the bus in such a window and {without[0]} without on two" in page
    assert f"on four {inside[1]} and {without[1]} ({two.date}, NCCL {two.value['nccl']}" in page
    shares, ours = [], []
    for ranks in (2, 4):
        rows = measurements.recorded("small_messages", ranks).value["rows"]
        seconds = {(row["bytes"], row["graph"], row["engine"]): row["seconds"] for row in rows}
        cases = [case[:2] for case in seconds if case[0] < 2**15 and case[2] == "NCCL"]
        shares.append([seconds[*case, measurements.WINDOW] / seconds[*case, "NCCL"] for case in cases])
        ours += [seconds[*case, "one-shot"] / seconds[*case, measurements.WINDOW] for case in cases]
    assert "Below 32 KiB a window takes a third off NCCL's time on two, half on four" in page
    assert shares[0] == pytest.approx([2 / 3] * 6, abs=0.05)
    assert shares[1] == pytest.approx([1 / 2] * 6, abs=0.05)
    assert f"one-shot kernel takes {min(ours):.2f} to {max(ours):.2f} of what is left" in page

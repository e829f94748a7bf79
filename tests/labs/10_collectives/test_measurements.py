"""What is recorded: of measurements that exist, right outputs, shown by the benchmark's tables."""

import importlib

import pytest

from kernels.collectives import measurements, model, recordings
from kernels.collectives.benchmark import BENCHMARK
from kernels.collectives.data_parallel_gpu import WAYS
from kernels.collectives.measurements import MEASUREMENTS
from warpcourse.bench.benchmark import correct

ring_readings = importlib.import_module("tests.labs.10_collectives.ring_readings")

RECORDED = recordings.load()


@pytest.mark.parametrize("key", RECORDED)
def test_recorded_outputs_were_right_and_on_enough_gpus(key):
    found = RECORDED[key]
    assert key in MEASUREMENTS
    assert correct(found.value)
    assert found.machine["gpus"] == recordings.gpus == measurements.RANKS
    assert found.value["ranks"] == found.machine["gpus"]


@pytest.mark.parametrize("key", [key for key in BENCHMARK.tables if key in RECORDED])
def test_every_row_is_shown(key):
    value = RECORDED[key].value
    text = BENCHMARK.tables[key].text(value)
    rows = len(value["rows"])
    if key == "small_messages":  # engines side by side
        rows = len({(row["bytes"], row["graph"]) for row in value["rows"]})
    assert len(text.splitlines()) == rows + 2  # heading and titles
    assert "NO" not in text.split()


def test_where_there_is_no_gpu_the_recording_is_given():
    if measurements.timing.gpu_count() < measurements.RANKS:
        found = measurements.measured("sgd")
        assert not found.live
        assert {row["way"] for row in found.value["rows"]} == set(WAYS)
        assert measurements.measured("no such key") is None


def test_a_timeline_has_the_parts_of_a_step_in_order():
    value = RECORDED["sgd_timeline"].value
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
def test_the_model_fitted_to_two_points_predicts_the_recorded_curve(engine):
    value = RECORDED["broadcast_curve"].value
    seconds = {row["slices"]: row["seconds"] for row in value["rows"] if row["engine"] == engine}
    assert set(seconds) == set(measurements.SLICES)
    link = ring_readings.fit(value["bytes"], value["ranks"], *((s, seconds[s]) for s in (8, 256)))
    for slices, found in seconds.items():
        assert model.ring_broadcast(value["bytes"], value["ranks"], slices, link) == pytest.approx(found, rel=0.1)


def test_the_page_on_libraries_has_the_recorded_figures():
    found = RECORDED["all_reduce_table"]
    gbps = {row["engine"]: f"{row['gbps']:.0f}" for row in found.value["rows"]}
    page = " ".join((recordings.path.parent / "device_api.md").read_text().split())
    assert f"moved {gbps[measurements.WINDOW]} GB/s in such a window and {gbps['NCCL']} without" in page
    assert f"two {found.device.split()[-1]} ({found.date}, NCCL {found.value['nccl']}" in page

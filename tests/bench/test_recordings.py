"""Recordings: live on a GPU, recorded without one, labelled either way; the committed files are complete."""

import json

import pytest

from kernels.vector_multiply.measurements import MEASUREMENTS
from warplab.bench import timing
from warplab.bench.recordings import KERNELS, MissingRecording, Recordings
from warplab.hardware import backend

MACHINE = {"device": "Some GPU", "date": "2001-02-03"}


@pytest.fixture
def on_simulator(monkeypatch):
    monkeypatch.setattr(backend, "name", lambda: "simulator")


@pytest.fixture
def on_gpu(monkeypatch):
    monkeypatch.setattr(backend, "name", lambda: "gpu")
    monkeypatch.setattr(timing, "machine", lambda: dict(MACHINE))


@pytest.fixture
def recordings(tmp_path):
    (tmp_path / "topic").mkdir()
    (tmp_path / "topic" / "recordings.json").write_text(json.dumps(MACHINE | {"values": {"known": [1.5, 2]}}))
    return Recordings("topic", tmp_path)


def must_not_run():
    raise AssertionError("a measurement ran without a GPU")


def test_without_a_gpu_the_recorded_value_is_shown_and_labelled(on_simulator, recordings):
    measurement = recordings.measure("known", must_not_run)
    assert measurement.value == [1.5, 2]
    assert not measurement.live
    assert measurement.label == "recorded on Some GPU, 2001-02-03"


def test_on_a_gpu_the_function_is_measured_and_labelled(on_gpu, recordings):
    measurement = recordings.measure("known", lambda: {"rows": ({"gbps": 123.456789},)})
    assert measurement.value == {"rows": [{"gbps": 123.5}]}, "live values have the types of recorded ones"
    assert measurement.live
    assert measurement.label == "measured on Some GPU, 2001-02-03"


def test_an_unknown_key_names_itself_and_the_known_ones(on_simulator, recordings):
    with pytest.raises(MissingRecording, match=r"'unknown' was never recorded for topic; recorded are: known\."):
        recordings.measure("unknown", must_not_run)


def test_a_missing_file_says_which_command_records(on_simulator, tmp_path):
    with pytest.raises(MissingRecording, match=r"python -m kernels\.other\.benchmark --record"):
        Recordings("other", tmp_path).measure("known", must_not_run)


def test_what_is_recorded_is_read_back(on_gpu, recordings, monkeypatch):
    recordings.record({"a": lambda: 0.123456, "b": lambda: {"n": 2**28}})
    monkeypatch.setattr(backend, "name", lambda: "simulator")
    assert recordings.measure("a", must_not_run).value == 0.1235
    assert recordings.measure("b", must_not_run).value == {"n": 2**28}
    with pytest.raises(MissingRecording):
        recordings.measure("known", must_not_run)


def test_a_failing_measurement_leaves_the_file_as_it_was(on_gpu, recordings):
    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        recordings.record({"a": lambda: 1, "b": fail})
    assert recordings.load()["values"] == {"known": [1.5, 2]}


def test_recording_needs_a_gpu(on_simulator, recordings):
    with pytest.raises(SystemExit) as exit:
        recordings.record({})
    assert exit.value.code == timing.NO_GPU


def test_every_measurement_of_lab_01_is_recorded_on_a_named_gpu():
    recorded = Recordings("vector_multiply").load()
    assert set(recorded["values"]) == set(MEASUREMENTS)
    assert recorded["device"].startswith("NVIDIA ")
    assert recorded["host"]["cores"] >= 1


def test_the_recorded_table_of_kernels_is_right_and_reaches_the_copy():
    rows = Recordings("vector_multiply").load()["values"]["kernel_table"]["rows"]
    assert all(row["correct"] for row in rows)
    assert max(row["ratio_to_copy"] for row in rows if row["language"] != "library") >= 1.0


def test_every_topic_with_recordings_can_be_read():
    files = list(KERNELS.glob("*/recordings.json"))
    assert len(files) >= 1
    for path in files:
        assert {"device", "date", "values"} <= set(Recordings(path.parent.name).load())

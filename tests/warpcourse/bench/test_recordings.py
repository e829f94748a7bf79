"""Recordings: live on a GPU, recorded without one, labelled either way; writing one keeps the others."""

import json
from concurrent.futures import ProcessPoolExecutor

import pytest

from warpcourse.bench import random_inputs, timing
from warpcourse.bench.lab import labs
from warpcourse.bench.lab_kernels import NotOnThisCard
from warpcourse.bench.recordings import Measurement, MissingRecording, Recordings
from warplab.estimating.beside import KnownTime
from warplab.hardware import backend

MACHINE = {"device": "Some GPU", "gpus": 1, "date": "2001-02-03"}
OTHER = {"device": "Another GPU", "gpus": 4, "date": "2002-03-04"}
HERE = Measurement([1], "this GPU", "2026-02-02", live=True)
# A lab that is not ready may still wait for a GPU to record the rest.
RECORDED = [lab for lab in labs() if lab.recordings.path.exists() and lab.status == "ready"]


@pytest.fixture
def on_simulator(monkeypatch):
    monkeypatch.setattr(backend, "name", lambda: "simulator")


@pytest.fixture
def on_gpu(monkeypatch):
    monkeypatch.setattr(backend, "name", lambda: "gpu")
    monkeypatch.setattr(random_inputs, "seed_cupy", lambda: None)
    monkeypatch.setattr(timing, "machine", lambda gpus: MACHINE | {"gpus": gpus})


@pytest.fixture
def empty(tmp_path):
    (tmp_path / "kernels" / "topic").mkdir(parents=True)
    return Recordings("kernels.topic", course=tmp_path)


@pytest.fixture
def recordings(empty):
    empty.write("known", [1.5, 2], MACHINE)
    return empty


def must_not_run():
    raise AssertionError("a measurement ran without a GPU")


def test_without_a_gpu_the_recorded_value_is_shown_and_labelled(on_simulator, recordings):
    measurement = recordings.measure("known", must_not_run)
    assert measurement.value == [1.5, 2]
    assert not measurement.live
    assert measurement.label == "recorded on Some GPU, 2001-02-03"
    assert measurement.machine == MACHINE


def test_on_a_gpu_the_function_is_measured_and_labelled(on_gpu, recordings):
    measurement = recordings.measure("known", lambda: {"rows": ({"gbps": 123.456789},)})
    assert measurement.value == {"rows": [{"gbps": 123.5}]}, "live values have the types of recorded ones"
    assert measurement.live
    assert measurement.label == "measured on Some GPU, 2001-02-03"
    assert recordings.recorded("known").value == [1.5, 2], "what was recorded can be asked for there too"
    assert recordings.recorded_if_any("known") == recordings.recorded("known")
    assert recordings.recorded_if_any("unknown") is None


def test_what_a_gpu_cannot_run_is_shown_as_recorded_and_says_why(on_gpu, recordings):
    def needs_more():
        raise NotOnThisCard("step 8 needs more")

    measurement = recordings.measure("known", needs_more)
    assert measurement.value == [1.5, 2]
    assert not measurement.live
    assert measurement.label == "recorded on Some GPU, 2001-02-03 (not on this card: step 8 needs more)"
    assert recordings.measure_if_possible("unknown", needs_more) is None


def test_a_learners_launch_has_the_time_that_was_recorded_of_its_like_or_none(on_simulator, recordings):
    known = recordings.time_of(None, 1, 32, must_not_run, key="known", find=lambda value: value[0], of="the course's")
    assert known == KnownTime(1.5, "Some GPU", "2001-02-03", live=False, of="the course's")
    assert recordings.time_of(None, 1, 32, must_not_run) is None
    assert recordings.time_of(None, 1, 32, must_not_run, key="unknown", find=max) is None


def test_on_a_gpu_a_learners_launch_is_timed_itself(on_gpu, recordings, monkeypatch):
    launched = []

    def time_gpu(call, runs):
        assert runs > 1
        call()
        return timing.Timing.of([2.5, 3.5, 9.5])

    monkeypatch.setattr(timing, "time_gpu", time_gpu)

    def kernel(*launch, shared_mem):
        launched.append(launch)

    known = recordings.time_of(kernel, 7, (32, 8), lambda: (1, 2), key="known", find=max, of="the course's")
    assert launched == [((7,), (32, 8), (1, 2))]
    assert known == KnownTime(3.5, "Some GPU", "2001-02-03", live=True)

    def too_large():
        raise MemoryError

    assert recordings.time_of(kernel, 7, 32, too_large) is None


def test_an_unknown_key_names_itself_and_the_known_ones(on_simulator, recordings):
    with pytest.raises(MissingRecording, match=r"'unknown' was never recorded for topic; recorded are: known\."):
        recordings.measure("unknown", must_not_run)


def test_a_missing_file_says_which_command_records(on_simulator, empty):
    with pytest.raises(MissingRecording, match=r"python -m kernels\.topic\.benchmark --record"):
        empty.measure("known", must_not_run)
    assert empty.values() == {}


def test_nothing_is_shown_where_nobody_measured(on_simulator, empty):
    assert empty.measure_if_possible("ladder", must_not_run) is None
    assert empty.here_and_recorded("ladder", None) == {}
    assert empty.here_and_recorded("ladder", HERE) == {HERE.label: [1]}


def test_measured_and_recorded_values_stand_side_by_side(on_simulator, recordings):
    label = "recorded on Some GPU, 2001-02-03"
    recorded = recordings.measure_if_possible("known", must_not_run)
    assert (recorded.label, recorded.value) == (label, [1.5, 2])
    assert recordings.here_and_recorded("known", recorded) == {label: [1.5, 2]}
    assert recordings.here_and_recorded("known", HERE) == {HERE.label: [1], label: [1.5, 2]}
    assert recordings.here_and_recorded("unknown", None) == {}


def test_writing_one_key_keeps_the_others_and_their_machines(recordings):
    recordings.write("a", {"n": 2**28}, OTHER)
    found = recordings.load()
    assert list(found) == ["known", "a"]
    assert (found["known"].value, found["known"].machine) == ([1.5, 2], MACHINE)
    assert (found["a"].value, found["a"].machine) == ({"n": 2**28}, OTHER)
    recordings.write("known", 3, OTHER)
    assert recordings.values() == {"known": 3, "a": {"n": 2**28}}
    assert [path.name for path in recordings.path.parent.iterdir()] == ["recordings.json"]


def write_twenty(arguments):
    package, course, first = arguments
    for k in range(first, first + 20):
        Recordings(package, course=course).write(f"key {k}", k, MACHINE)


def test_processes_that_write_at_once_lose_nothing(empty, tmp_path):
    with ProcessPoolExecutor(3) as pool:
        list(pool.map(write_twenty, [("kernels.topic", tmp_path, first) for first in (0, 20, 40)]))
    assert empty.values() == {f"key {k}": k for k in range(60)}


@pytest.mark.parametrize("lab", RECORDED, ids=lambda lab: lab.slug)
def test_every_measurement_of_a_lab_is_recorded_on_a_named_machine(lab):
    entries = json.loads(lab.recordings.path.read_text())
    benchmark = lab.module(lab.benchmark).BENCHMARK
    assert benchmark.not_recorded <= set(benchmark.measurements)
    assert set(entries) == set(benchmark.measurements) - benchmark.not_recorded
    for key, entry in entries.items():
        assert set(entry) == {"machine", "value"}
        machine = entry["machine"]
        assert machine["device"].startswith("NVIDIA "), key
        assert machine["gpus"] >= 1
        assert len(machine["date"]) == len("2026-11-21")
        assert {"cuda_driver", "cuda_runtime", "multiprocessors"} <= set(machine)
        assert machine["host"]["cores"] >= 1

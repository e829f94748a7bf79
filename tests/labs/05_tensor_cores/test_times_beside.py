"""The times that lesson 05 shows beside estimates, where there is no GPU."""

from kernels.tensor_core import measurements, recordings
from warplab.hardware import backend


def test_without_a_gpu_they_are_the_courses_or_none(monkeypatch):
    monkeypatch.setattr(backend, "name", lambda: "simulator")
    ladder = recordings.recorded("ladder")
    rows = {row["name"]: row["seconds"] for row in ladder.value["rows"]}
    known = measurements.product_time(None, 16, "wmma")
    assert known.seconds == rows["wmma"]
    assert known.of == "the course's wmma, whose result is float16"
    assert measurements.product_time(None, 32) is None
    times = ladder.step_times(["wmma_shared", "mma_stages"])
    assert {name: time.seconds for name, time in times.items()} == {name: rows[name] for name in times}
    assert times["mma_stages"].label == ladder.label

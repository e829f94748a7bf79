"""The times that lesson 04 shows beside estimates, where there is no GPU."""

from kernels.matmul import measurements, recordings
from warplab.hardware import backend


def test_without_a_gpu_they_are_the_courses_or_none(monkeypatch):
    monkeypatch.setattr(backend, "name", lambda: "simulator")
    ladder = recordings.recorded("ladder")
    rows = {row["name"]: row["seconds"] for row in ladder.value["rows"]}
    known = measurements.product_time(None, (32, 32), "shared_tile")
    assert known.seconds == rows["shared_tile"]
    assert known.of == "the course's shared_tile, in CUDA C++"
    assert measurements.product_time(None, (32, 8)) is None
    times = ladder.step_times(["shared_tile", "tuned"])
    assert {name: time.seconds for name, time in times.items()} == {name: rows[name] for name in times}
    assert times["tuned"].label == ladder.label

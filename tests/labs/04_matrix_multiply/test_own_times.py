"""The times that lesson 04 shows beside estimates, where there is no GPU."""

from kernels.matmul import own_times, recordings
from warplab.hardware import backend


def test_without_a_gpu_they_are_the_courses_or_none(monkeypatch):
    monkeypatch.setattr(backend, "name", lambda: "simulator")
    ladder = recordings.recorded("ladder")
    rows = {row["name"]: row["seconds"] for row in ladder.value["rows"]}
    known = own_times.product_time(None, (32, 32), "shared_tile")
    assert known.seconds == rows["shared_tile"]
    assert known.of == "the course's shared_tile, in CUDA C++"
    assert own_times.product_time(None, (32, 8)) is None
    times = own_times.step_times(ladder, ["shared_tile", "tuned"])
    assert {name: time.seconds for name, time in times.items()} == {name: rows[name] for name in times}
    assert times["tuned"].label == ladder.label

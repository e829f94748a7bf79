"""The times that lesson 02 shows beside estimates, where there is no GPU."""

import pytest

from kernels.memory_access import measurements, recordings
from warplab.hardware import backend


@pytest.mark.parametrize("name", ["cuda_naive", "cuda_tile", "cuda_padded"])
def test_without_a_gpu_they_are_the_courses(monkeypatch, name):
    monkeypatch.setattr(backend, "name", lambda: "simulator")
    rows = recordings.recorded("transpose_table").value["kernels"]
    known = measurements.transpose_time(None, 32, name)
    assert [known.seconds] == [row["seconds"] for row in rows if row["kernel"] == name]
    assert known.of == f"the course's {name}"

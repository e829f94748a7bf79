"""The times that lesson 01 shows beside estimates, where there is no GPU."""

import pytest

from kernels.vector_multiply import measurements, recordings
from warplab.hardware import backend


def test_without_a_gpu_they_are_the_courses_or_none(monkeypatch):
    monkeypatch.setattr(backend, "name", lambda: "simulator")
    value = recordings.recorded("block_sizes").value
    rate = next(r["gbps"] for r in value["rows"] if (r["kernel"], r["block"]) == ("cuda_scalar", 32))
    known = measurements.multiply_time(None, 32)
    assert known.seconds == pytest.approx(12 * value["n"] / rate / 1e9)
    assert known.label.startswith("recorded on NVIDIA ")
    assert "cuda_scalar" in known.of
    assert measurements.multiply_time(None, 32, blocks=2**19) is None

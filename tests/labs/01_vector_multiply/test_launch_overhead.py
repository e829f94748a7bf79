"""The launch overhead of a card is the one that this lab measured."""

import pytest

from kernels.vector_multiply import recordings
from warplab.hardware.cards import CARDS


def test_launch_overheads_are_measured_or_absent():
    """Hold the H100's to the one that `make record` wrote, give or take how much it scatters."""
    known = {name: c.launch_overhead_us for name, c in CARDS.items() if c.launch_overhead_us is not None}
    assert list(known) == ["H100"]
    recorded = recordings.load()["launch_overhead"]
    assert "H100" in recorded.device
    assert known["H100"] == pytest.approx(1e6 * recorded.value["gpu_seconds"], rel=0.2)
    assert "recordings.json" in CARDS["H100"].source("launch_overhead_us")

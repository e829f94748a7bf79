"""The times that lesson 03 shows beside estimates, where there is no GPU."""

import pytest

from kernels.warp_divergence import measurements, recordings
from warplab.hardware import backend


@pytest.mark.parametrize("by", ["lane", "warp"])
def test_without_a_gpu_the_courses_paths_have_a_time_and_the_learners_kernels_none(monkeypatch, by):
    monkeypatch.setattr(backend, "name", lambda: "simulator")
    rows = recordings.recorded("path_costs").value["rows"]
    known = measurements.paths_time(2, by)
    assert [known.seconds] == [row[f"by_{by}_seconds"] for row in rows if row["ways"] == 2]
    assert known.of == f"paths<2> by {by}"
    assert measurements.ways_time(None, 0) is None

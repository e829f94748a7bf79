"""What lesson 05 shows of its ladder: nothing, what was recorded, what was measured here, or both."""

import json

import pytest

from kernels.tensor_core import tensor_figures
from warplab.bench.recordings import Measurement, Recordings

HERE = Measurement([1], "this GPU", "2026-02-02", live=True)


@pytest.fixture
def recordings(tmp_path, monkeypatch):
    found = Recordings("tensor_core", tmp_path)
    found.path.parent.mkdir()
    monkeypatch.setattr(tensor_figures, "recordings", found)
    monkeypatch.setattr("warplab.hardware.backend.name", lambda: "simulator")
    return found


def test_nothing_where_nobody_measured(recordings):
    assert tensor_figures.measured("ladder", list) is None
    assert tensor_figures.here_and_recorded("ladder", None) == {}
    assert tensor_figures.here_and_recorded("ladder", HERE) == {HERE.label: [1]}


def test_recorded_values_with_their_label(recordings):
    values = {"ladder": [2]}
    recordings.path.write_text(json.dumps({"device": "that GPU", "date": "2026-01-01", "values": values}))
    label = "recorded on that GPU, 2026-01-01"
    recorded = tensor_figures.measured("ladder", list)
    assert (recorded.label, recorded.value) == (label, [2])
    assert tensor_figures.here_and_recorded("ladder", recorded) == {label: [2]}
    assert tensor_figures.here_and_recorded("ladder", HERE) == {HERE.label: [1], label: [2]}
    assert tensor_figures.here_and_recorded("shapes", None) == {}

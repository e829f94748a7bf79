"""Each test has a learner's folder of its own."""

import pytest

from warpcourse.learner import predictions, record


@pytest.fixture(autouse=True)
def mine(tmp_path, monkeypatch):
    """An own folder that does not exist yet."""
    monkeypatch.setenv("WARPLAB_MINE", str(tmp_path / "mine"))
    monkeypatch.setattr(predictions, "_asked", {})
    monkeypatch.setattr(record, "_unwritten", {})
    return tmp_path / "mine"

"""Arrays that are found again by what they were made of."""

import numpy as np
import pytest

from warplab.simulator.memory import recurring


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setattr(recurring, "_known", {})
    monkeypatch.setattr(recurring, "_kept", 0)


def test_the_same_array_comes_again():
    lanes = np.array([3, 5])
    first = recurring.repeated(lanes, 2)
    assert first.tolist() == [3, 3, 5, 5]
    assert recurring.repeated(lanes.copy(), 2) is first
    assert recurring.repeated(lanes, 3).tolist() == [3, 3, 3, 5, 5, 5]
    assert recurring.repeated(lanes, 2) is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 4


@pytest.mark.parametrize("times", [1, 100], ids=["small", "large"])
def test_what_is_kept_has_a_limit(times, monkeypatch):
    monkeypatch.setattr(recurring, "_MOST", 1 << 17)
    arrays = [recurring.repeated(np.array([k, k + 1]), times) for k in range(100)]
    assert [array[0] for array in arrays] == list(range(100))
    each = 2048 + 48 * 2 * times
    assert 0 < len(recurring._known) <= (1 << 17) // each < 100
    assert recurring.repeated(np.array([99, 100]), times) is arrays[-1]
    assert recurring.repeated(np.array([0, 1]), times) is not arrays[0]

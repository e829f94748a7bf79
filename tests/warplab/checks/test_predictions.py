"""The check of predicted numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from warplab import checks


@pytest.mark.parametrize("half", [0.5, Fraction(1, 2), np.float32(0.5), np.float64(0.5)])
def test_any_real_number_is_a_prediction(half):
    checks.predictions({"a": half}, {"a": 0.5})
    with pytest.raises(checks.CheckFailed, match="is wrong for 1 of 1"):
        checks.predictions({"a": half}, {"a": 0.25})


def test_predictions(capsys):
    checks.predictions({"a": 4, "b": 5.0, "c": None}, {"a": 4, "b": 5})
    assert capsys.readouterr().out == "prediction: right for 'a', 'b'.\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a": 4, "b": None}, "prediction has no number yet for 'b'."),
        ({}, "prediction has no number yet for 'a', 'b'."),
        ({"a": 4, "b": "5"}, "prediction has no finite number for 'b'."),
        ({"a": 4, "b": float("nan")}, "prediction has no finite number for 'b'."),
        ({"a": True, "b": 7}, "prediction has no finite number for 'a'."),
        ({"a": 4, "b": 6}, "prediction is wrong for 1 of 2: 'b'."),
        ([4, 7], "prediction is not a dict."),
    ],
)
def test_wrong_predictions_are_named_and_the_right_number_is_not(given, said):
    with pytest.raises(checks.CheckFailed) as caught:
        checks.predictions(given, {"a": 4, "b": 7})
    assert str(caught.value).startswith(said)
    assert "7" not in str(caught.value).replace("[4, 7]", "").replace("'b': 7", "")

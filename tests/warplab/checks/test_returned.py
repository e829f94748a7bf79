"""`checks.returned`: what a function returns in parts, and what is said of a part that is wrong."""

import numpy as np
import pytest

from warplab import checks

ONES = np.ones(3, np.float32)
RIGHT = [[ONES, None], 8.0, 2]
NAMES = ("weight {}", "the scale", "the count")


def failure(got, expected=RIGHT, parts=NAMES, **options):
    with pytest.raises(checks.CheckFailed) as caught:
        checks.returned("step", got, expected, parts=parts, **options)
    return caught.value


@pytest.mark.parametrize("got", [[[ONES.copy(), None], 8.0, 2], ((ONES, None), 8, np.int64(2))])
def test_right_parts_pass_in_silence(got, capsys):
    assert checks.returned("step", got, RIGHT, parts=NAMES) is None
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("got", "message", "kind"),
    [
        (None, "step returns nothing.", "not written"),
        ({"a": 1}, "step returns the wrong type.\n  expected  a list or tuple of 3\n  got       dict", "wrong type"),
        ([ONES, 8.0], "wrong length.\n  expected  a list or tuple of 3\n  got       list of 2", "wrong type"),
        ([ONES, 8.0, 2], "part 0 of the result has the wrong type.\n  expected  a list or tuple of 2", "wrong type"),
        ([[None, None], 8.0, 2], "weight 0 is wrong.\n  expected  an array\n  got       None", "wrong result"),
        ([[ONES, ONES], 8.0, 2], "weight 1 is wrong.\n  expected  None\n  got       an array", "wrong result"),
        ([[ONES, 0], 8.0, 2], "weight 1 is wrong.\n  expected  None\n  got       int: 0", "wrong result"),
        ([[2 * ONES, None], 8.0, 2], "weight 0 is wrong in 3 of 3 elements", "wrong result"),
        ([[ONES.astype(float), None], 8.0, 2], "weight 0 has the wrong dtype", "wrong type"),
        ([[ONES[:2], None], 8.0, 2], "weight 0 has the wrong shape", "wrong type"),
        ([[ONES, None], 4.0, 2], "the scale is wrong.\n  expected  8.0\n  got       4.0", "wrong result"),
        ([[ONES, None], 8.0, True], "the count is wrong.\n  expected  2\n  got       True", "wrong result"),
        ([[ONES, None], 8.0, "2"], "the count is wrong.\n  expected  2\n  got       '2'", "wrong result"),
    ],
)
def test_a_wrong_part_is_named(got, message, kind):
    failed = failure(got)
    assert message in str(failed)
    assert failed.kind == kind


def test_one_name_serves_all_parts():
    assert "gradient 1 is wrong in" in str(failure([ONES, 2 * ONES], [ONES, ONES], "gradient {}"))


def test_a_single_array():
    checks.returned("mean", ONES + 1e-6, ONES, atol=1e-5)
    assert "the result of step is wrong in" in str(failure(2 * ONES, ONES))
    assert "step returns nothing." in str(failure(None, ONES))
    checks.returned("none", None, None)


def test_the_input_is_told():
    assert failure([ONES], [2 * ONES], "part {}", where="n = 3").where == "n = 3"

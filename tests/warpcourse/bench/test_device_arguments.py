"""Checks of device arrays: each message names the array, what it is and what to do."""

from __future__ import annotations

import numpy as np
import pytest

from warpcourse.bench.device_arguments import check_apart, check_array
from warplab import cp

VECTOR = cp.zeros(12, np.float32)
MATRIX = cp.zeros((3, 4), np.float32)


@pytest.mark.parametrize(
    ("array", "options"),
    [
        (VECTOR, {}),
        (VECTOR, {"shape": (12,)}),
        (VECTOR, {"shape": (None,), "alignment": 16}),
        (MATRIX, {"shape": (None, 4)}),
        (MATRIX[1:], {"shape": (2, 4)}),
        (MATRIX[:, :1][:1], {}),
        (cp.zeros(0, np.int32), {"dtype": (np.float32, np.int32)}),
    ],
)
def test_what_fits_passes(array, options):
    check_array("x", array, **options)


@pytest.mark.parametrize(
    ("array", "options", "error", "message"),
    [
        (np.zeros(3), {}, TypeError, r"x is a ndarray in host memory; copy it with cp\.asarray\(x\)"),
        (VECTOR, {"dtype": (np.int32, np.uint8)}, ValueError, "x is float32; the kernel takes int32 or uint8"),
        (VECTOR, {"shape": (11,)}, ValueError, r"x has shape \(12,\); it must be \(11,\)"),
        (VECTOR, {"shape": (None, None)}, ValueError, "it must be a matrix"),
        (MATRIX, {"shape": (None,)}, ValueError, "it must be of one axis"),
        (VECTOR[::2], {}, ValueError, r"x is not contiguous.*cp\.ascontiguousarray\(x\)"),
        (MATRIX.T, {}, ValueError, "x is not contiguous"),
        (VECTOR[1:], {"alignment": 16}, ValueError, r"x starts 4 bytes past a multiple of 16.*x\.copy\(\)"),
    ],
)
def test_what_does_not_fit_is_named(array, options, error, message):
    with pytest.raises(error, match=message):
        check_array("x", array, **options)


def test_overlap():
    check_apart("x", VECTOR[:6], VECTOR[6:])
    with pytest.raises(ValueError, match="x and out overlap"):
        check_apart("x", VECTOR[:7], VECTOR[6:])

"""CuPy's names and parameters."""

import inspect

import cupy
import numpy as np
import pytest

from warplab.dropin import cupy as cp


@pytest.fixture
def a():
    return cp.asarray(np.arange(6, dtype=np.float32))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (cp, cupy),
        (cp.ndarray, cupy.ndarray),
        (cp.cuda, cupy.cuda),
        (cp.random, cupy.random),
        (cp.testing, cupy.testing),
    ],
)
def test_every_name_is_one_of_cupy(ours, theirs):
    own = {"DeviceArray", "annotations", "np", "lift", "sys", "types", "functools", "Callable"}
    own |= {"ndarray"} if ours is not cp else set()  # imported there
    names = {n for n in dir(ours) if not n.startswith("_")} - own
    assert len(names) > 2
    assert [n for n in sorted(names) if not hasattr(theirs, n)] == []


def test_python_functions_take_cupy_s_parameters():
    checked = 0
    for name in ("array", "asarray", "asnumpy", "empty", "zeros", "ones", "full", "copyto", "empty_like"):
        theirs = list(inspect.signature(getattr(cupy, name)).parameters)
        ours = list(inspect.signature(getattr(cp, name)).parameters)
        assert [p for p in ours if p not in theirs] == [], name
        assert theirs[: len(ours)][0] == ours[0], name
        checked += 1
    assert checked == 9


def test_what_is_missing_says_where_it_is():
    for space in (cp, cp.cuda, cp.random, cp.testing):
        with pytest.raises(AttributeError, match="on a GPU all of CuPy is there"):
            _ = space.no_such_thing
    assert not hasattr(cp, "fft")


def test_get_array_module(a):
    assert cp.get_array_module(np.ones(1), a) is cp
    assert cp.get_array_module(np.ones(1)) is np

"""The unseen launches: each kernel computes what NumPy does; each launch has its time, in the half of its kernel."""

from __future__ import annotations

import numpy as np
import pytest

from tools.unseen_launches.catalogue import KERNELS, launches
from warplab.launch.simulate import simulate


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_computes_what_numpy_does(name: str) -> None:
    kernel = KERNELS[name]
    case = kernel.case(**kernel.tested)
    arguments = case.arguments()
    before = [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]
    simulate(kernel.function(), case.grid, case.block, arguments, shared_bytes=case.shared_bytes)
    expected = case.expected(*before)
    assert expected
    for number, values in expected.items():
        found = arguments[number]
        if found.dtype.kind == "f":
            np.testing.assert_allclose(found, values, rtol=kernel.tolerance, atol=kernel.tolerance)
        else:
            np.testing.assert_array_equal(found, values)


def test_names_of_launches_are_unique() -> None:
    names = [name for name, *_ in launches()]
    assert len(set(names)) == len(names)
    assert len(names) >= 100
    assert len(KERNELS) >= 30

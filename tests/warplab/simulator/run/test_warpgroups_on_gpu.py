"""wgmma on a GPU, bit for bit as in the simulator: all layouts of `warpgroup_cases`, and numbers of all sizes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.random_inputs import generator
from tests.support.warpgroup_cases import (
    ROWS,
    Launch,
    cases,
    execute_warpgroups,
    launch_of,
    recordings,
    small_numbers,
)
from tests.warplab.simulator.run.test_warpgroups import registers_of
from warpcourse.bench import hopper

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", autouse=True)
def _hopper():
    if not hopper.available():
        pytest.skip("needs a GPU of compute capability 9.0")


def agrees(launch: Launch, folder) -> None:
    ours, _ = registers_of(launch)
    np.testing.assert_array_equal(execute_warpgroups("wgmma", launch, folder).view("u4"), ours.view("u4"))


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_layouts(case, tmp_path):
    """Of small integers, whose sums are exact: so only the places can be wrong."""
    random = generator()
    blocks, groups = (3, 1) if case.n > 128 else (2, 2)
    a, _ = small_numbers(case.kinds[1], (blocks, groups, ROWS, case.k), random)
    b, _ = small_numbers(case.kinds[2], (blocks, case.n, case.k), random)
    c, _ = small_numbers(case.kinds[0], (blocks, groups, ROWS, case.n), random)
    for add in (False, True):
        agrees(launch_of(case, a, b, c, add), tmp_path)


@pytest.mark.parametrize("name", recordings())
def test_sums(name, tmp_path):
    agrees(recordings()[name], tmp_path)

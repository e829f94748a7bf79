"""Sizes drawn from a seed."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import checks
from warplab.checks import session
from warplab.simulator import Device


def test_sizes_are_within_their_bounds_and_of_all_magnitudes():
    sizes = checks.drawn(400, 8, 4096, multiple=8, also=(1, 3))(np.random.default_rng(1))
    assert sizes[:2] == [1, 3]
    assert len(set(sizes)) == 402
    assert {type(n) for n in sizes} == {int}
    assert all(8 <= n <= 4096 and n % 8 == 0 for n in sizes[2:])


def test_small_sizes_are_as_likely_as_large_ones():
    rng = np.random.default_rng(1)
    firsts = [checks.drawn(1, 10, 10**4)(rng)[0] for _ in range(300)]
    assert 100 < sum(n < 316 for n in firsts) < 200


def test_sizes_of_several_dimensions():
    draw = checks.drawn(50, (1, 16, 5), (9, 64, 7), multiple=(1, 16, 1), also=[(2, 16, 5)])
    for rows, columns, depth in draw(np.random.default_rng(1)):
        assert 1 <= rows <= 9
        assert columns in (16, 32, 48, 64)
        assert 5 <= depth <= 7


def test_known_sizes_are_not_drawn():
    draw = checks.drawn(2, 1, 5, also=(1,), known=(2, 4))
    assert all(sorted(draw(np.random.default_rng(seed))) == [1, 3, 5] for seed in range(20))
    with pytest.raises(ValueError, match="there are too few"):
        checks.drawn(3, 1, 5, also=(1,), known=(2, 4))


def test_a_kernel_for_known_launches_only_is_found():
    from warplab import cuda

    @cuda.jit
    def some_launches(x, y):
        stride = cuda.gridsize(1) if cuda.blockDim.x in (32, 64) else 999
        for i in range(cuda.grid(1), y.size, stride):
            y[i] = x[i] + 1

    add = checks.elementwise(lambda x: x + 1, ("x",), "y")
    checks.kernel(some_launches, add, sizes=(5, 640), launches=[(1, 32), (2, 64)])
    launches = checks.drawn(2, (1, 96), (4, 256), multiple=(1, 32), also=[(1, 32)])
    with pytest.raises(checks.CheckFailed, match="written"):
        checks.kernel(some_launches, add, sizes=[1280], launches=launches)


def test_one_seed_gives_one_draw():
    draw = checks.drawn(5, 1, 10**6)
    first = draw(np.random.default_rng(3))
    assert first == draw(np.random.default_rng(3))
    assert first != draw(np.random.default_rng(4))


@pytest.mark.parametrize(("least", "most", "multiple"), [(5, 4, 1), (1, 7, 8), (0, 9, 1), ((1, 5), (9, 4), 1)])
def test_what_cannot_be_drawn_is_refused(least, most, multiple):
    with pytest.raises(ValueError, match="there are none"):
        checks.drawn(1, least, most, multiple=multiple)
    with pytest.raises(ValueError, match="there are too few"):
        checks.drawn(3, 1, 4, also=(2, 3))


def test_a_kernel_for_known_sizes_only_is_found():
    from warplab import cuda

    @cuda.jit
    def some_sizes(x, y):
        i = cuda.grid(1)
        if i < y.size and (y.size == 5 or y.size == 64):
            y[i] = x[i] + 1

    add = checks.elementwise(lambda x: x + 1, ("x",), "y")
    checks.kernel(some_sizes, add, sizes=(5, 64))
    with session.using(session.Session(lambda: 7, Device())), pytest.raises(checks.CheckFailed):
        checks.kernel(some_sizes, add, sizes=checks.drawn(3, 2, 999, also=(5, 64)))

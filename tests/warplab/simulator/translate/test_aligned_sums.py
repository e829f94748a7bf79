"""Sums of products as machine code: the bits of NumPy's, whatever the shapes and numbers."""

from collections import Counter

import numpy as np
import pytest

from tests.support.random_inputs import generator
from warplab.simulator.numerics import tensor_cores
from warplab.simulator.run.options import Options
from warplab.simulator.translate import aligned_sums, half_products, machine_compiler

ODD = [np.nan, np.inf, -np.inf, 0.0, -0.0, 2.0**-149, 2.0**-140, -1.9999999 * 2.0**127, 2.0**127, 65504, 2.0**-24]
# Shapes of A, B and C: of warps, of a warpgroup, of a sparse A.
SHAPES = {
    "warps": lambda k, p, q, row: ((k, p, 1, row), (k, 1, q, row)),
    "warpgroup": lambda k, p, q, row: ((k, p, q, 1), (k, p, 1, row)),
    "sparse": lambda k, p, q, row: ((k, p, 1, row), (k, p, q, row)),
}
compiled = pytest.mark.skipif(not machine_compiler.available(), reason="LLVM does not know this processor")


def numbers(random, shape: tuple[int, ...], odd: bool) -> np.ndarray:
    """Exact values of float16 or float32, as float64; some of them `ODD`."""
    values = random.standard_normal(shape) * 2.0 ** random.integers(-30, 30, shape)
    values = values.astype(random.choice([np.float16, np.float32])).astype(float)
    if odd:
        values.reshape(-1)[random.integers(0, values.size, 3)] = random.choice(ODD, 3)
    return values


def case(random, of: str, k: int = 16) -> tuple:
    """Arguments of `aligned`."""
    p, q, row = (int(n) for n in random.integers(1, [9, 9, 50]))
    with np.errstate(over="ignore"):
        factors = [numbers(random, shape, random.random() < 0.5) for shape in SHAPES[of](k, p, q, row)]
        c = numbers(random, (p, q, row), random.random() < 0.5)
    least = tuple(random.choice([2.0**-126, 2.0**-14, 2.0**-6, 0.0], 3).tolist())
    return *factors, c, least, int(random.choice([13, 25, 35])), str(random.choice(["f32", "f16", ""]))


def bits(values: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(values), np.nan, values).view(np.uint64)  # all NaN become one in the end


@compiled
@pytest.mark.parametrize("of", SHAPES)
def test_the_bits_of_numpy(of):
    random = generator()
    for _ in range(60):
        arguments = case(random, of, int(random.choice([4, 8, 16, 32])))
        with np.errstate(all="ignore"):
            want, got = tensor_cores.aligned(*arguments), aligned_sums.by_machine_code(*arguments)
        np.testing.assert_array_equal(bits(got), bits(want), err_msg=str([np.shape(x) for x in arguments]))


@compiled
@pytest.mark.parametrize(
    ("factor", "c", "kind"), [(-(2.0**-75), 0.0, "f32"), (2.0**-76, 2.0**-140, ""), (0.0, -0.0, "")]
)
def test_what_is_too_small_is_cut_off(factor, c, kind):
    """A sum of -0 becomes +0; products below 2**-151 leave no trace; zeros alone are a sum, too."""
    a, b = np.zeros((4, 1, 1, 16)), np.full((4, 1, 1, 16), 2.0**-76)
    a[0] = factor
    arguments = a, b, np.full((1, 1, 16), c), (0.0, 0.0, 0.0), 25, kind
    got = bits(aligned_sums.by_machine_code(*arguments))
    assert set(got.reshape(-1).tolist()) == {int(np.float64(abs(c)).view(np.uint64))}
    np.testing.assert_array_equal(got, bits(tensor_cores.aligned(*arguments)))


@compiled
def test_numpy_comes_first_and_alone_where_no_machine_code_is_wanted(monkeypatch):
    monkeypatch.setattr(aligned_sums, "_spent", Counter())
    monkeypatch.setattr(aligned_sums, "_LINK", 1e5)
    monkeypatch.setattr(aligned_sums, "_COMPILE", 1e5)
    ran = []
    monkeypatch.setattr(aligned_sums, "by_machine_code", lambda *_: ran.append(True))
    arguments, log = case(generator(), "warps"), {}
    with np.errstate(all="ignore"):
        for _ in range(3):
            assert aligned_sums.aligned(Options(machine_code=False), log)(*arguments) is not None
        add = aligned_sums.aligned(Options(), log)
        first = [add(*arguments) is not None for _ in range(8)]
    assert first[0]
    assert not first[-1]
    assert ran
    assert not log


def _fails():
    raise RuntimeError("LLVM fails")


@pytest.mark.parametrize("why", ["there is no compiler", "LLVM fails"])
def test_the_log_says_why_there_is_no_code(why, monkeypatch):
    monkeypatch.setattr(aligned_sums, "TIMES", 0)
    monkeypatch.setattr(machine_compiler, "available", lambda: why == "LLVM fails")
    monkeypatch.setattr(aligned_sums, "_codes", dict.fromkeys(aligned_sums._codes, _fails))
    monkeypatch.setattr(half_products, "_compiled", _fails)
    arguments, log = case(generator(), "warpgroup"), {}
    with np.errstate(all="ignore"):
        got = aligned_sums.aligned(Options(), log)(*arguments)
        np.testing.assert_array_equal(bits(got), bits(tensor_cores.aligned(*arguments)))
    of_halves = {}
    assert not half_products.ready(Options(), of_halves, ("f16", "f16", "f32", "f32"), 1)
    assert list(log) == list(of_halves) == [f"NumPy multiplied matrices: {why}"]

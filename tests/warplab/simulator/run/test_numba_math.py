"""Mathematics as Numba compiles it, on the simulator, against Python's `math`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba.cuda import libdevice  # noqa: F401 (the kernels' source names it)

# Largest error in units in the last place. CUDA's programming guide, "Mathematical Functions Appendix", gives them
# for the functions that libdevice has; float32 results are compared with float64 ones rounded.
ONE = {
    "acos": 2, "acosh": 4, "asin": 2, "asinh": 3, "atan": 2, "atanh": 3, "ceil": 0, "cos": 2, "cosh": 2, "erf": 2,
    "erfc": 5, "exp": 2, "expm1": 1, "fabs": 0, "floor": 0, "gamma": 10, "log": 1, "log10": 2, "log1p": 1, "log2": 1,
    "sin": 2, "sinh": 3, "sqrt": 0, "tan": 4, "tanh": 2, "trunc": 0, "degrees": 1, "radians": 1,
}  # fmt: skip
TWO = {"atan2": 3, "copysign": 0, "fmod": 0, "hypot": 3, "pow": 9}


def kernel(one: dict, two: dict):
    """A kernel that writes each function's value into a row of its own."""
    lines = ["def kernel(out, x, y):", "    i = cuda.grid(1)", "    if i < x.size:"]
    for row, name in enumerate([*one, *two]):
        arguments = "x[i]" if name in one else "x[i], y[i]"
        lines.append(f"        out[{row}, i] = math.{name}({arguments})")
    from numba import cuda

    scope = {"cuda": cuda, "math": math}
    exec("\n".join(lines), scope)
    return scope["kernel"]


def reference(function, *arguments) -> float:
    try:
        return function(*arguments)
    except (ValueError, OverflowError):
        return math.nan


@pytest.mark.filterwarnings("ignore::numba.cuda.core.errors.NumbaDebugInfoWarning")
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_math_functions(kind):
    from warplab.launch.simulate import simulate

    x = np.concatenate([np.linspace(-4, 4, 90), [0.0, -0.0, 1.0, -1.0, 1e-5, 0.999, 30.0, -30.0]]).astype(kind)
    y = np.roll(x, 7)
    out = np.full((len(ONE) + len(TWO), x.size), np.nan, kind)
    simulate(kernel(ONE, TWO), -(-x.size // 32), 32, (out, x, y))
    for row, (name, ulps) in zip(out, {**ONE, **TWO}.items(), strict=True):
        arguments = (x.tolist(),) if name in ONE else (x.tolist(), y.tolist())
        want = np.array([reference(getattr(math, name), *a) for a in zip(*arguments, strict=True)])
        known = np.isfinite(want)
        assert known.sum() > 20
        error = np.abs(row[known].astype(np.longdouble) - want[known])
        unit = np.spacing(np.abs(want[known]).astype(kind)).astype(np.longdouble)
        assert (error <= (ulps + (kind == "f4") * 0.51) * unit).all(), (name, float((error / unit).max()))

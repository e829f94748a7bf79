"""The GPU's approximate functions; float32 ones are rounded to nearest from float64.

The hardware interpolates in tables, a few units in the last place away from these (PTX ISA gives the bounds, and an
H100 stays within them). Code that corrects the results, as the compilers' division does, is not affected.
"""

import numpy as np

from warplab.simulator.numerics.rounding import canonical, flush_f32, narrow_f32

_TURN = np.float32(0.15915494)


def _nearest(a):
    return canonical(a.astype(np.float32))


def ex2_approx(a):
    return _nearest(np.exp2(a.astype(np.float64)))


def lg2_approx(a):
    return _nearest(np.log2(a.astype(np.float64)))


def _turns(a):
    """Return the angle in turns, less whole ones, float64. The hardware multiplies by 1 / 2π in float32, to zero."""
    turns = flush_f32(narrow_f32(np.multiply(a, _TURN, dtype=np.float64), "rz")).astype(np.float64)
    return turns - np.rint(turns)


def sin_approx(a):
    turns = _turns(a)
    return np.where(turns * 2 % 1 == 0, np.copysign(np.float32(0), a), _nearest(np.sin(turns * (2 * np.pi))))


def cos_approx(a):
    turns = _turns(a)
    return np.where(np.abs(turns) == 0.25, np.float32(0), _nearest(np.cos(turns * (2 * np.pi))))


def tanh_approx(a):
    return _nearest(np.tanh(a.astype(np.float64)))


def rcp_approx(a):
    return canonical(1 / a)


def sqrt_approx(a):
    return canonical(np.sqrt(a))


def rsqrt_approx(a):
    return _nearest(1 / np.sqrt(a.astype(np.float64)))


def div_approx(a, b):
    """Return a / b by a reciprocal, which is zero for a divisor beyond 2**126 (PTX ISA, "div")."""
    size = np.abs(b)
    huge = (size > np.float32(2.0**126)) & (size < np.float32(np.inf))
    quotient = a / b
    return canonical(np.where(huge, a * np.copysign(np.float32(0), b), quotient) if huge.any() else quotient)


def div_full(a, b):
    return canonical(a / b)


def _high_word(a):
    """Return float64 as function units leave it: 24 significant bits cut to the high 32, with subnormals as zeros.

    An H100 returns 98 % of all 2**20 reciprocals in a binade so, the others one unit of the high word away (recorded).
    """
    bits = a.view(np.uint64) + np.uint64(1 << 28)
    cut = (bits & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
    cut = np.where(np.abs(cut) < 2.0**-1022, np.copysign(0.0, cut), cut)
    return np.where(np.isfinite(a), cut, a)


def _top(a):
    """Return what the function units see of a float64: its high 32 bits, with subnormals as zeros."""
    a = (a.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
    return np.where(np.abs(a) < 2.0**-1022, np.copysign(0.0, a), a)


def rcp_approx_f64(a):
    """Compute rcp.approx.ftz.f64: the reciprocal of the high 32 bits, in 32 bits."""
    return _high_word(1 / _top(a))


def rsqrt_f64(a):
    """Compute rsqrt.approx.f64, which the assembler expands into many instructions, rounded to nearest."""
    return (1 / np.sqrt(a.astype(np.longdouble))).astype(np.float64)


def rsqrt_approx_f64(a):
    """Compute rsqrt.approx.ftz.f64: the reciprocal root of the high 32 bits, in 32 bits."""
    return _high_word(1 / np.sqrt(_top(a)))

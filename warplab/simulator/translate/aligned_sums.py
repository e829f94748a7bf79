"""Sums of products as tensor cores align them (`numerics.tensor_cores.aligned`), as machine code: the same numbers.

NumPy goes through all sums once for each product and step; here 16 of them stay in the nearest cache.
"""

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from warplab.simulator.numerics import tensor_cores
from warplab.simulator.translate import machine_compiler
from warplab.simulator.translate.machine_access import place_of

# Nanoseconds that NumPy takes for a product, and for a call; those to compile, or to link what an earlier process has
# compiled; and how many times over they are spent before: who stops just then has lost a fifth of its products' time.
_PRODUCT, _CALL, _COMPILE, _LINK, TIMES = 2.5, 2e5, 40e6, 1e6, 5
_WIDTH = 16  # sums that are computed together

_POWERS = """
def powers(S, a, out, many, least):
    for k in range(many):
        for i in lanes(16):
            value = ld8(a + 128 * k + 8 * i)
            power = value & INFINITY
            finite = power != INFINITY and (value & SIZE) != 0
            power = power if power > least else least
            st8(out + 128 * k + 8 * i, power if finite else 0)
"""
# Of A there is one number for all sums of a row, or one for each.
_SUMS = """
def {of}(S):
    largest = ld8(S + ROOM)
    step_a = ld8(S + A_K)
    step_b = ld8(S + B_K)
    for h in range(ld8(S + ROW) >> 4):
        for p in range(ld8(S + P)):
            for q in range(ld8(S + Q)):
                at_a = ld8(S + A_P) * p + ld8(S + A_Q) * q + {each} * h
                at_b = ld8(S + B_P) * p + ld8(S + B_Q) * q + 128 * h
                at_c = 8 * ld8(S + ROW) * (ld8(S + Q) * p + q) + 128 * h
                c = ld8(S + C) + at_c
                out = ld8(S + OUT) + at_c
                powers(S, c, largest, 1, ld8(S + LEAST))
                for i in lanes(16):
                    st8(largest + 8 * i, ld8(largest + 8 * i) if ld8(largest + 8 * i) > SMALLEST else SMALLEST)
                for k in range(ld8(S + FOURS)):
                    x = ld8(S + POWER_A) + at_a + 4 * k * step_a
                    y = ld8(S + POWER_B) + at_b + 4 * k * step_b
                    for i in lanes(16):
                        most = ld8(largest + 8 * i)
                        {powers}
                        st8(largest + 8 * i, most)
                for i in lanes(16):
                    scale = f64div(ld8(S + ONE), ld8(largest + 8 * i))
                    st8(largest + 128 + 8 * i, scale)
                    st8(largest + 256 + 8 * i, f64trunc(f64mul(ld8(c + 8 * i), scale)))
                for k in range(ld8(S + FOURS)):
                    x = ld8(S + A) + at_a + 4 * k * step_a
                    y = ld8(S + B) + at_b + 4 * k * step_b
                    for i in lanes(16):
                        scale = ld8(largest + 128 + 8 * i)
                        total = ld8(largest + 256 + 8 * i)
                        {products}
                        st8(largest + 256 + 8 * i, total)
                for i in lanes(16):
                    total = f64add(f64div(ld8(largest + 256 + 8 * i), ld8(largest + 128 + 8 * i)), 0)
                    st8(out + 8 * i, total)
                if ld8(S + CUT):
                    for i in lanes(16):
                        total = ld8(out + 8 * i)
                        size = total & SIZE
                        near = f32from_other(size)
                        up = f64gt(f64from_other(near), size) and size < TOO_LARGE
                        st8(out + 8 * i, f64add(f64from_other(near - 1 if up else near) | (total & SIGN), 0))
"""
_PRODUCT_OF = "f64mul(ld8(x + {k} * step_a{lane}), ld8(y + {k} * step_b + 8 * i))"
_LARGER = f"power = {_PRODUCT_OF}; most = power if power > most else most"
_ADDED = f"total = f64add(total, f64trunc(f64mul({_PRODUCT_OF}, scale)))"


@functools.cache
def _source(of: str) -> machine_compiler.Source:
    lane = "" if of == "one" else " + 8 * i"
    powers, products = ("; ".join(text.format(k=k, lane=lane) for k in range(4)) for text in (_LARGER, _ADDED))
    text = _POWERS + _SUMS.format(of=of, each=128 if lane else 0, powers=powers, products=products)
    return machine_compiler.Source(text, {**{name: 8 * k for k, name in enumerate(_FIELDS)}, **_BITS})


_FIELDS = (
    *("A", "POWER_A", "B", "POWER_B", "C", "OUT", "ROOM", "FOURS", "P", "Q", "ROW"),
    *("A_K", "A_P", "A_Q", "B_K", "B_P", "B_Q", "LEAST", "ONE", "CUT"),
)
_BITS = {"INFINITY": 0x7FF << 52, "SIZE": (1 << 63) - 1, "SIGN": -(1 << 63)}
_BITS |= {name: int(np.float64(x).view(np.int64)) for name, x in (("SMALLEST", 2.0**-126), ("TOO_LARGE", 2.0**128))}


_spent: Counter[str] = Counter()  # nanoseconds that NumPy has taken in this process, roughly


@functools.cache
def _compiled(of: str) -> tuple[Any, Any]:
    code = machine_compiler.Compiled(_source(of))
    return code.function("powers", 5), code.function(of)


def _of(a: np.ndarray) -> str:
    return "one" if a.shape[-1] == 1 else "each"


def aligned(options, log: dict[str, None]) -> tensor_cores.Aligned:
    """Return what does as `tensor_cores.aligned`, for a launch with these options and this log."""
    return functools.partial(_hot, log) if options.machine_code else tensor_cores.aligned


_codes = {of: functools.partial(_compiled, of) for of in ("one", "each")}


def hot(
    of: str,
    source: Callable[[], machine_compiler.Source],
    code: Callable[[], Any],
    products: int,
    log: dict[str, None],
) -> bool:
    """Tell whether there is machine code for sums of a kind, made from a source, and pays off for so many products
    more."""
    if _spent[of] < TIMES * _COMPILE and (
        _spent[of] < TIMES * _LINK or not (machine_compiler.available() and source().kept)
    ):
        _spent[of] += int(_CALL + _PRODUCT * products)
        return False
    why = machine_compiler.why_not(code)
    if why:
        log[f"NumPy multiplied matrices: {why}"] = None
    return not why


def _hot(log: dict[str, None], a, b, c, *rest) -> np.ndarray:
    of = _of(a)
    if hot(of, functools.partial(_source, of), _codes[of], a.shape[0] * c.size, log) and a.shape[0] % 4 == 0:
        return by_machine_code(a, b, c, *rest)
    return tensor_cores.aligned(a, b, c, *rest)


def by_machine_code(a, b, c, least: tuple[float, float, float], bits: int, kind: str) -> np.ndarray:
    """Return what `tensor_cores.aligned` does, for a multiple of four products."""
    of, row = _of(a), c.shape[-1]
    powers_of, sums_of = _compiled(of)
    a = np.ascontiguousarray(a) if of == "one" else _whole(a)
    b, c = _whole(b), _whole(c)
    *least_of, one = np.array([*least, 2.0**bits]).view(np.int64).tolist()
    powers = np.empty_like(a), np.empty_like(b)
    for x, power, number, bound in zip((a, b), powers, least, least_of, strict=False):
        if x.size % _WIDTH:
            power[:] = tensor_cores.powers(x, number)
        else:
            powers_of(0, place_of(x), place_of(power), x.size // _WIDTH, bound)
    out, room = np.empty_like(c), np.empty(3 * _WIDTH + 8)
    places = [place_of(x) for x in (a, powers[0], b, powers[1], c, out)]
    steps = [n if size > 1 else 0 for x in (a, b) for n, size in zip(x.strides[:3], x.shape, strict=False)]
    # The room begins with a line of the cache.
    fields = *places, -(-place_of(room) // 64) * 64, a.shape[0] // 4, *c.shape, *steps, least_of[2], one, kind == "f32"
    state = np.array(fields, np.int64)
    sums_of(place_of(state))
    out = out[..., :row]
    return tensor_cores.rounded(out, kind) if kind == "f16" else out


def _whole(x: np.ndarray) -> np.ndarray:
    """Return an array without gaps, with zeros behind its rows where these are no multiple of `_WIDTH`."""
    missing = -x.shape[-1] % _WIDTH
    if missing:
        return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
    dense = x.transpose(np.argsort(x.strides)[::-1]).flags.c_contiguous and x.strides[-1] == x.itemsize
    return x if dense else np.ascontiguousarray(x)

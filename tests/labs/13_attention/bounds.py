"""How near to float64 the kernels of lab 13 must be, from how they round; and their operands.

Of one query, with p its weights, exact. Rounding to a type is relative, by its unit u at most, but for float16 below
2^-14 absolute, by 2^-25 (TINY). Sums on tensor cores err by STEP_ERROR of the sum of sizes for each 16 addends, those
of float32 by 2^-23 for each addend, product and sum (`of_sum`).

A score s errs by e = of_sum(size) * scale * sum |q||k|. What is exponentiated, s - largest, is taken to base 2 and
rounded a few times: 2^-21 * max |s|. An exponential errs by 2^-21 at most, and so does each rescaling of what came
before: one for each tile, and a few where splits are combined. So an unnormalised weight, and their sum, err
relatively by
    weight = max e + 2^-21 * (max |s| + tiles + 5),
and lse by that, by of_sum(keys), and by its own rounding. In the output weights err twice, once in numerator and
denominator each; the product rounds them to the type of v, by u, or TINY where the largest weight is at least 1.

Backward, a weight p = exp(s - lse) errs by e and by 2^-21 * (max |s| + |lse| + 1). dp errs by of_sum(size) of its sum
of sizes, delta by that and by what the output it is computed from was rounded. Both go into ds = p (dp - delta), which
is rounded once more before the product with k or q, as p is before that with dout.
"""

from typing import NamedTuple

import numpy as np

from kernels.attention import reference
from tests.support.tensor_products import STEP_ERROR

KINDS = {"float32": (2.0**-24, 0.0), "float16": (2.0**-11, 2.0**-25), "bfloat16": (2.0**-8, 0.0)}  # u and TINY
LEAST_KEYS = 16  # of a tile, of any kernel


class Operand(NamedTuple):
    """An array as a kernel takes it, and its numbers as float32."""

    given: np.ndarray
    numbers: np.ndarray


def rounded(x, kind):
    """Numbers in the type `kind`, bfloat16 as its bits in uint16."""
    if kind != "bfloat16":
        x = np.asarray(x).astype(kind)
        return Operand(x, x.astype(np.float32))
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    given = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return Operand(given, numbers_of(given))


def numbers_of(x):
    """The numbers of what a kernel gives, uint16 as bits of bfloat16."""
    return (x.astype(np.uint32) << 16).view(np.float32) if x.dtype == np.uint16 else x


def operands(random, batch, heads, shared_by, queries, keys, size, kind):
    """Random q, k and v, normally distributed."""
    of_keys = batch, heads // shared_by, keys, size
    return [rounded(random.standard_normal(s), kind) for s in ((batch, heads, queries, size), of_keys, of_keys)]


def of_sum(addends, kind):
    """How much a sum errs, of the sum of sizes."""
    return addends * 2.0**-23 if kind == "float32" else -(-addends // 16) * STEP_ERROR


def weight_error(q, k, causal, scale, kind):
    """How much unnormalised weights err, relatively: (batch, heads, length, 1)."""
    size, keys = q.shape[-1], k.shape[2]
    scale = size**-0.5 if scale is None else scale
    sees = reference.seen(q.shape[2], keys, causal)
    sizes = scale * (np.abs(q) @ reference.for_each_query_head(np.abs(k), q.shape[1]).swapaxes(-1, -2))
    s = np.where(sees, np.abs(reference.scores(q, k, False, scale)), 0)
    scores_err = of_sum(size, kind) * np.where(sees, sizes, 0).max(-1, keepdims=True, initial=0)
    return scores_err + 2.0**-21 * (s.max(-1, keepdims=True, initial=0) + keys / LEAST_KEYS + 5)


def forward_bounds(q, k, v, causal, scale, kind):
    """How much out and lse of a forward pass may differ from the exact ones."""
    unit, tiny = KINDS[kind]
    weight = weight_error(q, k, causal, scale, kind)
    sees = reference.seen(q.shape[2], k.shape[2], causal)
    wide = np.abs(reference.for_each_query_head(v, q.shape[1]))
    exact, lse = reference.forward(q, k, v, causal, scale)
    through = reference.weights(reference.scores(q, k, causal, scale)) @ wide
    keys = of_sum(k.shape[2], kind)
    relative = 2 * (weight + keys) + (0 if kind == "float32" else unit)
    out = relative * through + tiny * (sees.astype(float) @ wide)
    out += unit * (np.abs(exact) + out) + tiny
    return out, weight[..., 0] + keys + 2.0**-22 * np.abs(np.where(np.isfinite(lse), lse, 0)) + 2.0**-22


def backward_bounds(q, k, v, dout, causal, scale, kind):
    """How much dq, dk and dv may differ from the exact ones, given exact out and lse, rounded to their types."""
    unit, tiny = KINDS[kind]
    heads, of_keys, size = q.shape[1], k.shape[1], q.shape[-1]
    scale = size**-0.5 if scale is None else scale
    wide_k, wide_v = (reference.for_each_query_head(x, heads) for x in (k, v))
    s = reference.scores(q, k, causal, scale)
    p, lse = reference.weights(s), reference.log_sums(s)[..., None]
    out, dout = p @ wide_v, dout.astype(np.float64)
    relative = weight_error(q, k, causal, scale, kind) + 2.0**-21 * np.abs(np.where(np.isfinite(lse), lse, 0))
    dp, delta = dout @ wide_v.swapaxes(-1, -2), (dout * out).sum(-1, keepdims=True)
    of_dp = of_sum(size, kind) * (np.abs(dout) @ np.abs(wide_v).swapaxes(-1, -2))
    of_delta = (np.abs(dout) * ((unit + size * 2.0**-23) * np.abs(out) + tiny)).sum(-1, keepdims=True)
    ds = np.abs(p * (dp - delta))
    of_ds = p * (of_dp + of_delta)
    of_ds += (relative + 2.0**-21 + unit) * (ds + of_ds) + tiny * (p > 0)
    of_p = (relative + unit) * p + tiny * (p > 0)

    def product(weights, errors, other, addends):
        return errors @ np.abs(other) + of_sum(addends, kind) * ((weights + errors) @ np.abs(other))

    queries = q.shape[2] * heads // of_keys
    turned = [x.swapaxes(-1, -2) for x in (ds, of_ds, p, of_p)]
    bounds = (
        scale * product(ds, of_ds, wide_k, k.shape[2]),
        scale * reference.over_groups(product(*turned[:2], q.astype(np.float64), queries), of_keys),
        reference.over_groups(product(*turned[2:], dout, queries), of_keys),
    )
    exact = reference.backward(q, k, v, dout, causal, scale)
    return [bound + unit * (np.abs(x) + bound) + tiny for bound, x in zip(bounds, exact, strict=True)]


def within(found, exact, bound):
    """Whether all are as near as the bound says; what is infinite must be the same."""
    finite = np.isfinite(exact)
    same = np.array_equal(found[~finite], exact[~finite])
    return same and bool((np.abs(found[finite] - exact[finite]) <= bound[finite]).all())

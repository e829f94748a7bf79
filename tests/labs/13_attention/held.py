"""Runs of lab 13's kernels on the active backend, held to float64 within the bounds of `bounds`."""

import functools

import numpy as np

from kernels.attention import reference
from kernels.attention.backward_pass import backward
from kernels.attention.decoding import decode
from kernels.attention.forward_pass import forward
from tests.support.random_inputs import generator
from warplab import cp

from .bounds import backward_bounds, forward_bounds, numbers_of, operands, rounded, within

GUARD = 64


def guarded(shape, dtype):
    """A poisoned array on the device between guard bands, and a check that nothing was written to these."""
    poison = np.dtype(dtype).type(0x7FC1 if dtype == np.uint16 else np.nan)
    whole = cp.asarray(np.full(np.prod(shape, dtype=int) + 2 * GUARD, poison))

    def check():
        ends = np.concatenate([cp.asnumpy(whole[:GUARD]), cp.asnumpy(whole[-GUARD:])])
        assert ends.tobytes() == np.full(2 * GUARD, poison).tobytes(), "written outside the output"

    return whole[GUARD:-GUARD].reshape(shape), check


def run_forward(name, q, k, v, causal, scale=None):
    """What a step computes into guarded memory, as numbers."""
    given = [cp.asarray(x.given) for x in (q, k, v)]
    out, check_out = guarded(q.given.shape, q.given.dtype)
    lse, check_lse = guarded(q.given.shape[:3], np.float32)
    found = forward(*given, causal, scale, name, out, lse)
    assert found[0] is out
    assert found[1] is lse
    check_out()
    check_lse()
    return numbers_of(cp.asnumpy(out)), cp.asnumpy(lse)


def check_forward(name, case, kind, scale=None, random=None):
    """A step against the reference. `case`: batch, heads, query heads for a head of keys, queries, keys, size,
    causal."""
    *sizes, causal = case
    q, k, v = operands(random or generator(), *sizes, kind)
    out, lse = run_forward(name, q, k, v, causal, scale)
    numbers = q.numbers, k.numbers, v.numbers
    bounds = forward_bounds(*numbers, causal, scale, kind)
    for found, exact, bound in zip((out, lse), reference.forward(*numbers, causal, scale), bounds, strict=True):
        assert within(found, exact, bound), f"{name}, {kind}, {case}"


@functools.cache
def backward_inputs(case, kind):
    """Operands, dout, and what the forward pass leaves, rounded as it rounds them; the numbers of the first four."""
    *sizes, causal = case
    random = generator()
    q, k, v = operands(random, *sizes, kind)
    dout = rounded(random.standard_normal(q.given.shape), kind)
    out, lse = reference.forward(q.numbers, k.numbers, v.numbers, causal)
    given = (q.given, k.given, v.given, rounded(out, kind).given, lse.astype(np.float32), dout.given)
    return given, (q.numbers, k.numbers, v.numbers, dout.numbers)


def gradients(name, case, kind):
    """What a step computes, as numbers."""
    found = backward(*map(cp.asarray, backward_inputs(case, kind)[0]), case[-1], step=name)
    return [numbers_of(cp.asnumpy(x)) for x in found]


def check_backward(name, case, kind):
    """The gradients of a step against the reference; `case` as in `check_forward`."""
    numbers, causal = backward_inputs(case, kind)[1], case[-1]
    exact, bounds = reference.backward(*numbers, causal), backward_bounds(*numbers, causal, None, kind)
    for of, found, of_it, bound in zip(("dq", "dk", "dv"), gradients(name, case, kind), exact, bounds, strict=True):
        assert within(found, of_it, bound), f"{of} of {name}, {kind}, {case}"


def paged(random, x, page):
    """A cache (batch, heads, keys, size) as pages in random places between others full of NaN, and their table."""
    batch, heads, keys, size = x.shape
    of_one = -(-keys // page)
    whole = np.full((batch, heads, of_one * page, size), 0x7FC1 if x.dtype == np.uint16 else np.nan, x.dtype)
    whole[:, :, :keys] = x
    table = random.permutation(batch * of_one + 3)[: batch * of_one].reshape(batch, of_one).astype(np.int32)
    pages = np.full(
        (batch * of_one + 3, heads, page, size), whole.dtype.type(0x7FC1 if x.dtype == np.uint16 else np.nan)
    )
    pages[table] = whole.reshape(batch, heads, of_one, page, size).transpose(0, 2, 1, 3, 4)
    return pages, table


def check_decode(case, kind, splits, page=None, lengths=None, random=None):
    """One decoding against the reference; keys of each sequence past its length are NaN in the cache."""
    random = random or generator()
    batch, heads, shared_by, keys, size = case
    q, k, v = operands(random, batch, heads, shared_by, 1, keys, size, kind)
    lengths = np.full(batch, keys, np.int32) if lengths is None else np.array(lengths, np.int32)
    given = [k.given.copy(), v.given.copy()]
    for x in given:
        for i, length in enumerate(lengths):
            x[i, :, length:] = 0x7FC1 if kind == "bfloat16" else np.nan
    table = None
    if page:
        state = random.bit_generator.state
        k_pages, table = paged(random, given[0], page)
        random.bit_generator.state = state
        given = [k_pages, paged(random, given[1], page)[0]]
    found = decode(
        cp.asarray(q.given[:, :, 0].copy()),
        *map(cp.asarray, given),
        cp.asarray(lengths),
        None if table is None else cp.asarray(table),
        splits=splits,
    )
    out, lse = numbers_of(cp.asnumpy(found[0])), cp.asnumpy(found[1])
    for i, length in enumerate(lengths):
        numbers = q.numbers[i : i + 1], k.numbers[i : i + 1, :, :length], v.numbers[i : i + 1, :, :length]
        exact, exact_lse = reference.forward(*numbers)
        bound, bound_lse = forward_bounds(*numbers, False, None, kind)
        assert within(out[i], exact[0, :, 0], bound[0, :, 0]), f"sequence {i}, {case}"
        assert within(lse[i], exact_lse[0, :, 0], bound_lse[0, :, 0]), f"sequence {i}, {case}"

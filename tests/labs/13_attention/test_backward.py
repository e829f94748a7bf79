"""Lab 13's backward pass and its reference: against differences, float64 within derived bounds, and itself."""

import re

import numpy as np
import pytest

from kernels.attention import reference
from kernels.attention.backward_pass import WGMMA_THREADS, backward, wgmma_bytes, wgmma_options
from kernels.attention.sources import SOURCES
from tests.support.random_inputs import generator
from warpcourse.bench import hopper
from warplab import cp
from warplab.compile import nvrtc

from .bounds import backward_bounds, rounded, within
from .held import backward_inputs, check_backward, gradients

# As in test_kernels.py: batch, heads, query heads for a head of keys, queries, keys, size, causal.
CASES = (
    (1, 1, 1, 1, 1, 32, True),
    (1, 2, 2, 37, 70, 64, True),
    (2, 2, 1, 40, 9, 80, True),
    (1, 1, 1, 70, 130, 128, False),
    (1, 6, 3, 33, 65, 96, True),
    (1, 1, 1, 17, 33, 256, False),
)
# Heads of 128: tiles of 64 queries, of which some see none of the last keys; heads of 64: of 128; others go to "mma".
WGMMA_CASES = (
    (1, 1, 1, 1, 1, 64, True),
    (2, 2, 2, 70, 130, 128, True),
    (1, 1, 1, 150, 40, 64, True),
    (1, 1, 1, 130, 9, 128, False),
    (1, 1, 1, 5, 9, 32, True),
)


def test_the_reference_is_the_slope_of_the_forward_pass():
    random = generator()
    arrays = [random.standard_normal(s) for s in ((1, 4, 5, 3), (1, 2, 6, 3), (1, 2, 6, 3), (1, 4, 5, 3))]
    *inputs, dout = arrays
    found = reference.backward(*inputs, dout, True, 0.7)

    def loss(which, moved):
        given = [x + moved if i == which else x for i, x in enumerate(inputs)]
        return (reference.forward(*given, True, 0.7)[0] * dout).sum()

    for which, gradient in enumerate(found):
        way = 1e-5 * random.standard_normal(gradient.shape)
        slope = loss(which, way) - loss(which, -way)
        np.testing.assert_allclose(slope, 2 * (gradient * way).sum(), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_at_awkward_sizes(case, kind):
    check_backward("mma", case, kind)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", WGMMA_CASES, ids=str)
def test_gradients_by_wgmma_at_awkward_sizes(case, kind):
    check_backward("wgmma", case, kind)


@pytest.mark.thorough
@pytest.mark.parametrize("size", [64, 128])
def test_machine_code_of_hoppers_step_is_as_it_must_be(size):
    given = *hopper.include(), *wgmma_options(size, np.uint16 if size == 128 else np.float16)
    log, *_ = nvrtc.assemble_cuda(SOURCES.text("backward_wgmma.cu"), "backward_wgmma.cu", "90a", given)
    assert log.count("0 bytes spill stores") == 3
    assert not re.search(r"warning|C75\d\d|Potential Performance", log), log
    assert max(map(int, re.findall(r"Used (\d+) registers", log))) * WGMMA_THREADS <= 65536
    static = max(map(int, re.findall(r"(\d+) bytes smem", log)))
    assert wgmma_bytes(size) + static <= 227 * 1024


def test_gradients_are_the_same_each_time():
    case = CASES[1]
    for first, second in zip(*(gradients("mma", case, "float16") for _ in range(2)), strict=True):
        assert first.tobytes() == second.tobytes()


def test_the_bounds_tell_wrong_gradients_apart():
    case = (1, 4, 2, 33, 65, 64, True)
    q, k, v, dout = backward_inputs(case, "float16")[1]
    exact = reference.backward(q, k, v, dout, True)
    bounds = backward_bounds(q, k, v, dout, True, None, "float16")
    p = reference.weights(reference.scores(q, k, True))
    wide_k, wide_v = (reference.for_each_query_head(x, 4) for x in (k, v))
    without_delta = p * (dout @ wide_v.swapaxes(-1, -2)) / 8
    first_of_group = (p.swapaxes(-1, -2) @ dout)[:, ::2]
    for which, wrong in ((0, without_delta @ wide_k), (2, first_of_group), (1, 8 * exact.dk)):
        assert within(rounded(exact[which], "float16").numbers, exact[which], bounds[which])
        assert not within(wrong, exact[which], bounds[which])


def test_wrong_arguments_are_named():
    given = list(map(cp.asarray, backward_inputs(CASES[1], "float16")[0]))
    with pytest.raises(ValueError, match=r"lse has shape \(1, 2, 36\); it must be \(1, 2, 37\)"):
        backward(*given[:4], given[4][:, :, :-1].copy(), given[5])
    with pytest.raises(ValueError, match="dout is float32; the kernel takes float16"):
        backward(*given[:5], given[5].astype(np.float32))
    with pytest.raises(ValueError, match=r"out has shape"):
        backward(*given[:3], given[1], *given[4:])
    with pytest.raises(ValueError, match="there is no step 'naive'; choose one of 'mma', 'wgmma'"):
        backward(*given, step="naive")


def test_no_keys_give_zeros():
    q, k, v, out, lse, dout = map(cp.asarray, backward_inputs(CASES[1], "float16")[0])
    found = backward(q, k[:, :, :0].copy(), v[:, :, :0].copy(), out, lse, dout)
    assert not cp.asnumpy(found[0]).any()
    assert found[1].shape == (1, 1, 0, 64)

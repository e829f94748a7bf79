"""Likely causes of wrong answers on tensor cores: tiles past the end, layouts and strides of fragments, halves."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import checks
from warplab.checks import explain_fragments
from warplab.launch.kernel_source import CudaSource

LAYER = """\
#include <mma.h>
using namespace nvcuda::wmma;
extern "C" __global__ void f(const half *x, const half *w, float *y, int outputs, int inputs)
{
    fragment<matrix_a, 16, 16, 16, half, row_major> a;
    fragment<matrix_b, 16, 16, 16, half, col_major> b;
    fragment<accumulator, 16, 16, 16, float> sum;
    for (int column = 0; column < outputs; column += 16) {
        fill_fragment(sum, 0.0f);
        for (int k = 0; k < inputs; k += 16) {
            load_matrix_sync(a, x + k, inputs);
            load_matrix_sync(b, w + column * inputs + k, inputs);
            mma_sync(sum, a, b, sum);
        }
        store_matrix_sync(y + column, sum, outputs, mem_row_major);
    }
}
"""


def layer(rng, outputs):
    """16 rows, 32 inputs; values for which few or no sums are equal by chance."""
    x, w = ((rng.integers(-64, 65, (rows, 32)) / 8).astype(np.float16) for rows in (16, outputs))
    sizes = {"outputs": np.int32(outputs), "inputs": np.int32(32)}
    y = x.astype(np.float32) @ w.T.astype(np.float32)
    return checks.Case({"x": x, "w": w, "y": None, **sizes}, {"y": y})


def run(source, make_case=layer, size=32):
    checks.kernel(CudaSource(source, "f"), make_case, sizes=[size], launches=[(1, 32)])


def test_the_layer_is_right():
    run(LAYER)


@pytest.mark.parametrize(
    ("right", "wrong", "look_at"),
    [
        ("half, col_major> b", "half, row_major> b", "the layout of w's fragment"),
        ("half, row_major> a", "half, col_major> a", "the layout of x's fragment"),
        ("(b, w + column * inputs + k, inputs)", "(b, w + column * inputs + k, 16)", explain_fragments.WRONG),
        ("x + k", "x", explain_fragments.WRONG),
        ("column < outputs", "column < outputs + 16", explain_fragments.PAST_THE_END),
    ],
)
def test_a_wrong_fragment_points_to_fragments(right, wrong, look_at):
    assert LAYER.count(right) == 1
    with pytest.raises(checks.CheckFailed) as caught:
        run(LAYER.replace(right, wrong))
    assert look_at in caught.value.look_at


BIASED = """\
#include <cuda_fp16.h>
extern "C" __global__ void f(const half *x, const float *bias, float *y)
{
    int i = threadIdx.x;
    half2 pair = ((const half2 *)x)[i + FIRST];
    y[i] = __low2float(pair) + __high2float(pair) + bias[i + SHIFT];
}
"""


def biased(rng, n):
    x, bias = rng.integers(-8, 9, 2 * n).astype(np.float16), rng.integers(-8, 9, n).astype(np.float32)
    sums = x[0::2].astype(np.float32) + x[1::2].astype(np.float32)
    return checks.Case({"x": x, "bias": bias, "y": None}, {"y": sums + bias})


@pytest.mark.parametrize(("first", "shift", "array"), [("0", "1", "bias"), ("1", "0", "x")])
def test_pairs_of_halves_do_not_explain_an_index_past_the_end(first, shift, array):
    with pytest.raises(checks.CheckFailed) as caught:
        run(BIASED.replace("FIRST", first).replace("SHIFT", shift), biased)
    assert caught.value.look_at.startswith(f"the index into {array}")

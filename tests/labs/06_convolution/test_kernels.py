"""Lab 06's passes on the active backend against float64: any parameters, nothing written outside, bad input refused."""

import math
from dataclasses import replace

import numpy as np
import pytest

from kernels.convolution import convolve, ladder, recordings
from kernels.convolution.beside import fft
from kernels.convolution.common.sources import FOLDER, sizes
from kernels.convolution.definition import networks, reference
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.steps import mma_step
from kernels.convolution.steps.mma_step import MmaTiles
from tests.support.random_inputs import generator
from warplab import cp, profile
from warplab.hardware import backend
from warplab.simulator.ptx import fragments

FP32 = ("numba_direct", "direct", "im2col", "implicit_gemm", "winograd", "fft")
GUARD = 64  # elements before and after a result
CASES = {
    "one element": Convolution(1, 1, 1, 1, 1, 1, 1),
    "windows wholly in the padding": Convolution(1, 2, 1, 1, 3, 1, 1, (2, 3)),
    "a filter larger than the image": Convolution(1, 2, 3, 2, 2, 5, 5, (2, 3)),
    "padding wider than the filter": Convolution(1, 1, 2, 3, 2, 3, 3, (3, 4)),
    "strides longer than the filter": Convolution(2, 3, 9, 8, 5, 2, 2, stride=(3, 4)),
    "rows and columns that no window reaches": Convolution(1, 2, 8, 9, 3, 3, 3, stride=(3, 4)),
    "padding, stride and dilation that differ": Convolution(1, 3, 9, 11, 4, 3, 2, (2, 1), (1, 2), (2, 3)),
    "images of one row": Convolution(3, 4, 1, 17, 3, 1, 5, (0, 2)),
    "two groups": Convolution(2, 6, 7, 5, 10, 3, 3, (1, 1), groups=2),
    "a filter for each channel": Convolution(1, 5, 6, 6, 5, 3, 3, (1, 1), groups=5),
    "two filters for each channel": Convolution(2, 3, 5, 7, 6, 3, 3, (1, 1), (2, 2), groups=3),
    "odd channels and filters": Convolution(1, 11, 6, 7, 13, 3, 3, (1, 1)),
    "several tiles and their tails": Convolution(2, 9, 12, 11, 70, 3, 3, (1, 1)),
    "vectors": Convolution(2, 16, 9, 9, 72, 3, 3, (1, 1)),
    "vectors of two groups": Convolution(1, 16, 7, 9, 24, 3, 3, (1, 1), groups=2),
    "a strided window of one": Convolution(1, 72, 7, 7, 80, 1, 1, stride=(2, 2)),
}
WHOLE = Convolution(2, 16, 8, 8, 64, 3, 3, (1, 1))  # whole tiles
parametrize_cases = pytest.mark.parametrize("conv", CASES.values(), ids=CASES)


def normal(*shapes, dtype=np.float32):
    random = generator()
    return [random.standard_normal(shape).astype(dtype) for shape in shapes]


def parameters(conv, layout="NCHW"):
    return {
        "padding": conv.padding,
        "stride": conv.stride,
        "dilation": conv.dilation,
        "groups": conv.groups,
        "layout": layout,
    }


def guarded(function, shape, dtype=np.float32, offset=0):
    """What function(out) computes into poisoned memory, `offset` elements past a multiple of 256 bytes.

    Fails if it returns anything but `out`, or writes to the guard bands around it.
    """
    first, size = GUARD + offset, math.prod(shape)
    whole = cp.asarray(np.full(first + size + GUARD, np.nan, dtype))
    out = whole[first : first + size].reshape(shape)
    assert function(out) is out
    found = cp.asnumpy(whole)
    assert np.isnan(found[:first]).all(), "written before the result"
    assert np.isnan(found[first + size :]).all(), "written past the result"
    return found[first : first + size].reshape(shape)


def run(conv, name, x, w, bias=None, relu=False, layout="NCHW", offset=0):
    x, w, bias = (None if array is None else cp.asarray(array) for array in (x, w, bias))
    given = parameters(conv, layout)
    return guarded(
        lambda out: convolve.forward(x, w, bias, relu, step=name, out=out, **given),
        conv.y_shape(layout),
        x.dtype,
        offset,
    )


def broadcast(bias, layout):
    return bias if layout == "NHWC" else bias[:, None, None]


def tolerance(name, found, exact, size, depth):
    """The largest error of float32 sums. `size`: the same sums of absolute values; `depth`: their addends."""
    if name in ("winograd", "fft"):  # which mix neighbours before they add
        return 2.0**-19 * size.max() * np.ones_like(size)
    bound = (depth + 2) * 2.0**-23 * size
    return bound + (2.0**-11 * np.abs(exact) + 2.0**-24 if found.dtype == np.float16 else 0)


def check(name, found, exact, size, depth):
    error = np.abs(found - exact)
    bound = tolerance(name, found, exact, size, depth)
    wrong = np.argwhere(~(error <= bound))
    assert not len(wrong), f"{len(wrong)} of {error.size} wrong, such as {wrong[:4].tolist()}: {error.max()}"


def check_forward(conv, name, layout="NCHW", dtype=np.float32, offset=0):
    """Once as it is, once with bias and ReLU."""
    x, w = normal(conv.x_shape(layout), conv.w_shape(layout), dtype=dtype)
    (bias,) = normal((conv.k,))
    exact = reference.forward(x, w, conv, layout)
    size = reference.forward(np.abs(x), np.abs(w), conv, layout)
    check(name, run(conv, name, x, w, layout=layout, offset=offset), exact, size, conv.depth)
    exact = exact + broadcast(bias, layout)
    size = size + np.abs(broadcast(bias, layout))
    found = run(conv, name, x, w, bias, True, layout, offset)
    check(name, found, np.maximum(exact, 0), size, conv.depth)


# -- forward ----------------------------------------------------------------------------------------------------------


@parametrize_cases
@pytest.mark.parametrize("name", [name for name in FP32 if name != "winograd"])
def test_fp32(name, conv):
    check_forward(conv, name)


WINOGRAD = {
    "an odd height and width": Convolution(2, 3, 7, 5, 4, 3, 3, (1, 1)),
    "no padding": Convolution(1, 2, 6, 7, 3, 3, 3),
    "one window": Convolution(1, 2, 3, 3, 1, 3, 3),
    "windows wholly in the padding": Convolution(1, 2, 1, 2, 3, 3, 3, (4, 3)),
    "two groups": CASES["two groups"],
    "a filter for each channel": CASES["a filter for each channel"],
    "several tiles and their tails": CASES["several tiles and their tails"],
    "more tiles than a block's": Convolution(3, 9, 15, 14, 66, 3, 3, (1, 1)),
}


@pytest.mark.parametrize("conv", WINOGRAD.values(), ids=WINOGRAD)
def test_winograd(conv):
    check_forward(conv, "winograd")


@parametrize_cases
def test_fp16_on_tensor_cores(conv):
    check_forward(conv, "mma_nhwc", "NHWC", np.float16)


@pytest.mark.parametrize(
    "chosen", [mma_step.LARGE, mma_step.FLAT, mma_step.SMALL, MmaTiles(64, 64, 32, 32, 2, 1)], ids=str
)
@pytest.mark.parametrize("conv", [CASES["several tiles and their tails"], CASES["vectors"], WHOLE], ids=str)
def test_every_tile_of_step_4(chosen, conv):
    x, w = normal(conv.x_shape("NHWC"), conv.w_shape("NHWC"), dtype=np.float16)
    out = cp.asarray(np.full(conv.y_shape("NHWC"), np.nan, np.float16))
    ladder.step("mma_nhwc").launch(cp.asarray(x), cp.asarray(w), out, conv, chosen=chosen)
    exact = reference.forward(x, w, conv, "NHWC")
    size = reference.forward(np.abs(x), np.abs(w), conv, "NHWC")
    check("mma_nhwc", cp.asnumpy(out), exact, size, conv.depth)


def test_arrays_at_odd_addresses():
    conv = CASES["vectors"]
    check_forward(conv, "mma_nhwc", "NHWC", np.float16, offset=1)
    for name in FP32:
        check_forward(conv, name, offset=1)
    x, w = normal(conv.x_shape("NHWC"), conv.w_shape("NHWC"), dtype=np.float16)
    memory = cp.asarray(np.zeros(x.size + 1, np.float16))
    memory[1:] = cp.asarray(x.reshape(-1))
    given = parameters(conv, "NHWC")
    found = convolve.forward(memory[1:].reshape(x.shape), cp.asarray(w), step="mma_nhwc", **given)
    again = convolve.forward(cp.asarray(x), cp.asarray(w), step="mma_nhwc", **given)
    np.testing.assert_array_equal(cp.asnumpy(found), cp.asnumpy(again))


def test_fp16_is_rounded_once():
    """Bias and ReLU come before it: sums of 2048 + 1 lose the 1 in float16, and get it back only in float32."""
    conv = Convolution(1, 16, 4, 4, 8, 1, 1)
    x, w = np.zeros(conv.x_shape("NHWC"), np.float16), np.zeros(conv.w_shape("NHWC"), np.float16)
    x[..., :2], w[..., 0], w[..., 1] = 1, 2048, 1
    found = run(conv, "mma_nhwc", x, w, np.full(8, 1, np.float32), layout="NHWC")
    np.testing.assert_array_equal(found, np.full(found.shape, 2050, np.float16))


def test_the_bound_tells_float16_sums_apart():
    conv = WHOLE
    x, w = normal(conv.x_shape("NHWC"), conv.w_shape("NHWC"), dtype=np.float16)
    exact = reference.forward(x, w, conv, "NHWC")
    size = reference.forward(np.abs(x), np.abs(w), conv, "NHWC")
    sums = np.zeros(exact.shape, np.float16)
    one = Convolution(conv.n, 1, conv.h, conv.w, conv.k, 3, 3, (1, 1))
    for c in range(conv.c):
        sums += reference.forward(x[..., c : c + 1], w[..., c : c + 1], one, "NHWC").astype(np.float16)
    assert (np.abs(sums - exact) > tolerance("mma_nhwc", sums, exact, size, conv.depth)).any()


# -- backward ---------------------------------------------------------------------------------------------------------


BACKWARD = pytest.mark.parametrize(
    ("name", "layout", "dtype"), [("implicit_gemm", "NCHW", np.float32), ("mma_nhwc", "NHWC", np.float16)]
)


@parametrize_cases
@BACKWARD
def test_backward_data(name, layout, dtype, conv):
    dy, w = normal(conv.y_shape(layout), conv.w_shape(layout), dtype=dtype)
    given = parameters(conv, layout) | {"step": name}
    found = guarded(
        lambda out: convolve.backward_data(cp.asarray(dy), cp.asarray(w), conv.x_shape(layout), out=out, **given),
        conv.x_shape(layout),
        dtype,
    )
    exact = reference.backward_data(dy, w, conv, layout)
    size = reference.backward_data(np.abs(dy), np.abs(w), conv, layout)
    check(name, found, exact, size, conv.k // conv.groups * conv.r * conv.s)


def check_backward_filter(conv, name, layout, dtype):
    x, dy = normal(conv.x_shape(layout), conv.y_shape(layout), dtype=dtype)
    given = parameters(conv, layout) | {"step": name}
    found = guarded(
        lambda out: convolve.backward_filter(cp.asarray(x), cp.asarray(dy), conv.w_shape(layout), out=out, **given),
        conv.w_shape(layout),
        dtype,
    )
    exact = reference.backward_filter(x, dy, conv, layout)
    size = reference.backward_filter(np.abs(x), np.abs(dy), conv, layout)
    check(name, found, exact, size, conv.n * conv.p * conv.q)


@parametrize_cases
@BACKWARD
def test_backward_filter(name, layout, dtype, conv):
    check_backward_filter(conv, name, layout, dtype)


@BACKWARD
@pytest.mark.parametrize(
    "conv", [Convolution(3, 3, 19, 18, 5, 3, 3, (1, 1)), Convolution(3, 8, 19, 18, 72, 3, 3, (1, 1))], ids=str
)
def test_backward_filter_whose_depth_is_split(name, layout, dtype, conv):
    splits, length = ladder.step(name, "backward_filter").splits(conv)
    assert splits > 1
    assert (splits - 1) * length < conv.gemm[0] < splits * length, "the last one is shorter"
    check_backward_filter(conv, name, layout, dtype)


@pytest.mark.parametrize("chosen", [mma_step.LARGE, mma_step.FLAT], ids=str)
def test_larger_tiles_of_the_backward_passes(chosen):
    conv = Convolution(1, 136, 7, 8, 72, 3, 3, (1, 1))
    x, w, dy = normal(*(shape("NHWC") for shape in (conv.x_shape, conv.w_shape, conv.y_shape)), dtype=np.float16)
    dx, dw = (cp.asarray(np.full_like(array, np.nan)) for array in (x, w))
    x, w, dy = (cp.asarray(array) for array in (x, w, dy))
    ladder.step("mma_nhwc", "backward_data").launch(dy, w, dx, conv, chosen=chosen)
    replace(ladder.step("mma_nhwc", "backward_filter"), tiles=chosen).launch(x, dy, dw, conv)
    x, w, dy, dx, dw = (cp.asnumpy(array) for array in (x, w, dy, dx, dw))
    of = reference.backward_data
    check("mma_nhwc", dx, of(dy, w, conv, "NHWC"), of(np.abs(dy), np.abs(w), conv, "NHWC"), 72 * 9)
    of = reference.backward_filter
    check("mma_nhwc", dw, of(x, dy, conv, "NHWC"), of(np.abs(x), np.abs(dy), conv, "NHWC"), 56)


# -- padding of millions of rows -------------------------------------------------------------------------------------

# Windows begin so far outside the image that elements up to there pass 32 bits; the second has the same windows.
FAR = Convolution(1, 8, 4, 4, 8, 2, 1, padding=(2**26 - 1, 0), stride=(2**26, 1), dilation=(2**26, 1))
NEAR = replace(FAR, padding=(3, 0), stride=(4, 1), dilation=(4, 1))


@pytest.mark.parametrize(
    ("name", "layout", "dtype"),
    [(name, "NCHW", np.float32) for name in FP32 if name not in ("winograd", "fft")]
    + [("mma_nhwc", "NHWC", np.float16)],
)
def test_windows_that_begin_millions_of_rows_above_the_image(name, layout, dtype):
    x, w = normal(FAR.x_shape(layout), FAR.w_shape(layout), dtype=dtype)
    exact, size = (reference.forward(of(x), of(w), NEAR, layout) for of in (np.asarray, np.abs))
    assert (size > 0).all()
    check(name, run(FAR, name, x, w, layout=layout), exact, size, FAR.depth)


@BACKWARD
def test_gradients_of_windows_that_begin_millions_of_rows_above_the_image(name, layout, dtype):
    x, w, dy = normal(*(shape(layout) for shape in (FAR.x_shape, FAR.w_shape, FAR.y_shape)), dtype=dtype)
    given, on_device = parameters(FAR, layout) | {"step": name}, cp.asarray(dy)
    dx = cp.asnumpy(convolve.backward_data(on_device, cp.asarray(w), x.shape, **given))
    dw = cp.asnumpy(convolve.backward_filter(cp.asarray(x), on_device, w.shape, **given))
    exact, size = (reference.backward_data(of(dy), of(w), NEAR, layout) for of in (np.asarray, np.abs))
    check(name, dx, exact, size, 16)
    exact, size = (reference.backward_filter(of(x), of(dy), NEAR, layout) for of in (np.asarray, np.abs))
    check(name, dw, exact, size, 8)


# -- what is not a number ---------------------------------------------------------------------------------------------

ANY = pytest.mark.parametrize(
    ("name", "layout", "dtype"),
    [(name, "NCHW", np.float32) for name in ("direct", "im2col", "implicit_gemm")] + [("mma_nhwc", "NHWC", np.float16)],
)


def spoilt(shape, dtype):
    """Numbers from 1 to 2, so that sums of infinities are no NaN, and an infinity in the middle."""
    array = generator().uniform(1, 2, shape).astype(dtype)
    array.flat[array.size // 2] = np.inf
    return array


@ANY
@pytest.mark.parametrize("conv", [CASES["two groups"], CASES["odd channels and filters"]], ids=str)
def test_an_infinity_stays_in_the_windows_that_hold_it(name, layout, dtype, conv):
    """Tiles reach beyond the depth, and there nothing may be multiplied by zero that is not a zero itself."""
    x, w = spoilt(conv.x_shape(layout), dtype), np.ones(conv.w_shape(layout), dtype)
    found, exact = run(conv, name, x, w, layout=layout), reference.forward(x, w, conv, layout)
    assert 0 < np.isinf(exact).sum() < exact.size
    np.testing.assert_array_equal(np.isinf(found), np.isinf(exact))
    assert not np.isnan(found).any()


@BACKWARD
@pytest.mark.parametrize("conv", [CASES["two groups"], CASES["odd channels and filters"]], ids=str)
def test_an_infinity_in_the_gradient(name, layout, dtype, conv):
    dy, ones = spoilt(conv.y_shape(layout), dtype), np.ones(conv.w_shape(layout), dtype)
    x, given = np.ones(conv.x_shape(layout), dtype), parameters(conv, layout) | {"step": name}
    x, ones, on_device = cp.asarray(x), cp.asarray(ones), cp.asarray(dy)
    for found, exact in (
        (convolve.backward_data(on_device, ones, x.shape, **given), reference.backward_data),
        (convolve.backward_filter(x, on_device, ones.shape, **given), reference.backward_filter),
    ):
        other = ones if exact is reference.backward_data else x
        pair = (dy, cp.asnumpy(other)) if exact is reference.backward_data else (cp.asnumpy(other), dy)
        with np.errstate(invalid="ignore"):
            expected = exact(*pair, conv, layout)
        np.testing.assert_array_equal(np.isinf(cp.asnumpy(found)), np.isinf(expected))
        np.testing.assert_array_equal(np.isnan(cp.asnumpy(found)), np.isnan(expected))  # padding's zeros times infinity
        assert 0 < np.isinf(expected).sum() < expected.size


def test_relu_keeps_what_is_not_a_number():
    """As in frameworks: a NaN that becomes 0 would hide an error."""
    conv = Convolution(1, 8, 2, 2, 8, 1, 1)
    for name, layout, dtype in [(name, "NCHW", np.float32) for name in FP32] + [("mma_nhwc", "NHWC", np.float16)]:
        if name == "winograd":
            continue
        x, w = np.full(conv.x_shape(layout), np.nan, dtype), np.ones(conv.w_shape(layout), dtype)
        found = cp.asnumpy(convolve.forward(cp.asarray(x), cp.asarray(w), relu=True, step=name, layout=layout))
        assert np.isnan(found).all(), name


# -- workspace --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["im2col", "winograd"])
def test_the_workspace_is_as_large_as_said(name):
    conv, step = CASES["two groups"], ladder.step(name)
    x, w = normal(conv.x_shape(), conv.w_shape())
    size = step.workspace_bytes(conv, np.float32)
    memory = cp.asarray(np.full(size + 512, 0xFF, np.uint8))
    y = cp.empty(conv.y_shape(), np.float32)
    step.launch(cp.asarray(x), cp.asarray(w), y, conv, workspace=memory[256 : 256 + size])
    check(name, cp.asnumpy(y), reference.forward(x, w, conv), reference.forward(abs(x), abs(w), conv), conv.depth)
    found = cp.asnumpy(memory)
    assert (found[:256] == 0xFF).all()
    assert (found[256 + size :] == 0xFF).all()
    assert not (found[256 : 256 + size].view(np.uint32) == 0xFFFFFFFF).any(), "a part of the workspace is not used"


def test_what_workspaces_cost():
    layer = next(layer.convolution for layer in networks.convolutions() if layer.name == "conv4_x 3×3")
    x_bytes = 4 * math.prod(layer.x_shape())
    assert ladder.step("im2col").workspace_bytes(layer, np.float32) == 9 * x_bytes
    assert ladder.step("implicit_gemm").workspace_bytes(layer, np.float32) == 0
    assert ladder.step("winograd").workspace_bytes(layer, np.float32) == 4 * x_bytes * 2 + 64 * layer.k * layer.c
    assert fft.lengths(Convolution(1, 1, 11, 13, 1, 3, 3, (1, 2))) == (14, 18)


# -- counters ---------------------------------------------------------------------------------------------------------


def counted(name, conv, layout="NCHW", dtype=np.float32):
    """The profile's launches of a step on zeros."""
    shapes = conv.x_shape(layout), conv.w_shape(layout), conv.y_shape(layout)
    x, w, y = (cp.zeros(shape, dtype) for shape in shapes)
    with profile() as p:
        ladder.step(name).launch(x, w, y, conv)
    return list(p)


def test_what_im2col_writes_and_implicit_gemm_does_not():
    y_bytes, columns = 4 * math.prod(WHOLE.y_shape()), 4 * WHOLE.depth * WHOLE.gemm[0]
    im2col, product = (launch.counts.global_store_bytes for launch in counted("im2col", WHOLE))
    (implicit,) = counted("implicit_gemm", WHOLE)
    assert (im2col, product) == (columns, y_bytes)
    assert implicit.counts.global_store_bytes == y_bytes


def test_a_tile_reads_an_element_of_x_once_for_64_filters():
    (direct,), (implicit,) = counted("direct", WHOLE), counted("implicit_gemm", WHOLE)
    heights = [sum(0 <= p + r - 1 < 8 for r in range(3)) for p in range(8)]  # taps in the image, along one axis
    inside = sum(heights) ** 2 * WHOLE.n * WHOLE.c  # elements of x that the windows hold
    one_for_a_warp = direct.counts.global_load_requests // 2  # of w, all lanes read the same
    assert direct.counts.flops_f32 == 2 * inside * WHOLE.k
    assert direct.counts.global_load_bytes == 4 * (inside * WHOLE.k + one_for_a_warp)
    assert implicit.counts.global_load_bytes == 4 * (inside * WHOLE.k // 64 + WHOLE.depth * WHOLE.k)


def test_tensor_cores_do_the_products_without_bank_conflicts():
    conv = replace(WHOLE, c=64)  # whole tiles along the depth, too
    (launch,) = counted("mma_nhwc", conv, "NHWC", np.float16)
    done = sum(number * fragments.flops(kind) for kind, number in launch.tensor_operations.items())
    assert done == conv.flops
    assert launch.counts.shared_load_conflicts == launch.counts.shared_store_conflicts == 0
    assert launch.counts.global_store_sectors == math.prod(conv.y_shape()) * 2 / 32


# -- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(backend.name() != "simulator", reason="on a GPU faster steps are there")
def test_auto_takes_the_fastest_that_can():
    conv = CASES["odd channels and filters"]
    assert ladder.fastest(conv, "NCHW", np.float32).name == "implicit_gemm"
    assert ladder.fastest(replace(WHOLE, c=64), "NCHW", np.float32).name == "winograd"
    assert ladder.fastest(CASES["a strided window of one"], "NCHW", np.float32).name == "implicit_gemm"
    assert ladder.fastest(conv, "NHWC", np.float16).name == "mma_nhwc"
    assert ladder.fastest(conv, "NCHW", np.float32, "backward_data").name == "implicit_gemm"
    x, w = normal(conv.x_shape(), conv.w_shape())
    found = convolve.forward(cp.asarray(x), cp.asarray(w), padding=1)
    check(
        "implicit_gemm", cp.asnumpy(found), reference.forward(x, w, conv), reference.forward(abs(x), abs(w), conv), 99
    )


def test_wrong_arguments_are_named():
    x, w = cp.zeros((2, 4, 5, 6), np.float32), cp.zeros((8, 4, 3, 3), np.float32)
    half_x, half_w = x.astype(np.float16), w.astype(np.float16)
    bias, out = cp.zeros(8, np.float32), cp.zeros((2, 8, 3, 4), np.float32)
    f = convolve.forward
    for arguments, options, error, message in (
        (
            (np.zeros((1, 1, 1, 1), np.float32), w),
            {},
            TypeError,
            r"x is a ndarray in host memory; copy it with cp\.asa",
        ),
        ((x, w.astype(np.float64)), {}, ValueError, "w is float64; the kernel takes float32 or float16"),
        ((x, half_w), {}, ValueError, "x is float32 and w float16; both must be of one type"),
        ((x[0], w), {}, ValueError, r"x has shape \(4, 5, 6\); it must have the four axes NCHW"),
        ((x, w[:, :3].copy()), {}, ValueError, "x has 4 channels and w 3 per group; 1 groups of 3 make 3"),
        ((x, w), {"groups": 2}, ValueError, "x has 4 channels and w 4 per group; 2 groups of 4 make 8"),
        ((x[:, :, ::2], w), {}, ValueError, "x is not contiguous"),
        ((x, w), {"dilation": 3}, ValueError, "the dilated filter is 7 high and the padded image 5: no window fits"),
        ((x, w), {"stride": 0}, ValueError, r"stride is \(0, 0\); it must be two whole numbers, at least 1"),
        ((x, w), {"padding": -1}, ValueError, r"padding is \(-1, -1\)"),
        ((x, w), {"padding": "same"}, ValueError, "padding is 'same'; it must be a whole number or two"),
        ((x, w), {"stride": 1.5}, ValueError, "stride is 1.5; it must be a whole number or two"),
        ((x, w), {"dilation": (1, 1, 1)}, ValueError, r"dilation is \(1, 1, 1\); it must be a whole number or two"),
        ((x, w), {"groups": None}, ValueError, "groups is None; it must be a whole number, at least 1"),
        ((x, w), {"groups": 0}, ValueError, "groups is 0; it must be a whole number, at least 1"),
        ((x, w), {"stride": 2**30 + 1}, ValueError, r"the stride is .*; the kernels count up to 1,073,741,824"),
        ((x, w), {"padding": 2**30}, ValueError, "more than|the padded image is"),
        ((x, w), {"layout": "CHWN"}, ValueError, "there is no layout 'CHWN'; choose one of NCHW, NHWC"),
        ((x, w), {"step": None}, ValueError, "there is no step None for forward; choose 'auto' or one of 'fft'"),
        ((x, w), {"step": "cudnn"}, ValueError, "there is no step 'cudnn' for forward; choose 'auto' or one of 'fft'"),
        (
            (x, w),
            {"step": 4},
            ValueError,
            "mma_nhwc takes float16 in NHWC, and not float32 in NCHW: convert the arrays",
        ),
        ((half_x, half_w), {}, ValueError, "no step takes float16 in NCHW: convert the arrays to float32 in NCHW or f"),
        ((x, w, bias[:7]), {}, ValueError, r"bias has shape \(7,\); it must be \(8,\)"),
        ((x, w, bias.astype(np.float16)), {}, ValueError, "bias is float16; the kernel takes float32"),
        ((x, w), {"out": out[:1]}, ValueError, r"out has shape \(1, 8, 3, 4\); it must be \(2, 8, 3, 4\)"),
        ((x, w), {"out": out.astype(np.float16)}, ValueError, "out is float16; the kernel takes float32"),
        (
            (x, w),
            {"step": "winograd", "stride": 2},
            ValueError,
            "winograd computes filters of 3 × 3 with stride 1.*take",
        ),
    ):
        with pytest.raises(error, match=message):
            f(*arguments, **options)
    memory = cp.zeros(1000, np.float32)
    with pytest.raises(ValueError, match="x and out overlap"):
        f(memory[:240].reshape(2, 4, 5, 6), w, out=memory[200:392].reshape(2, 8, 3, 4))


def test_numpys_integers_are_whole_numbers():
    conv = CASES["two groups"]
    x, w = normal(conv.x_shape(), conv.w_shape())
    given = {name: np.int64(value) for name, value in (("padding", 1), ("stride", 1), ("groups", 2))}
    found = convolve.forward(cp.asarray(x), cp.asarray(w), dilation=(np.int32(1), 1), **given)
    check(
        "implicit_gemm", cp.asnumpy(found), reference.forward(x, w, conv), reference.forward(abs(x), abs(w), conv), 27
    )


def test_wrong_arguments_of_the_backward_passes_are_named():
    x, w, dy = (cp.zeros(shape, np.float32) for shape in ((2, 4, 5, 6), (8, 4, 3, 3), (2, 8, 3, 4)))
    with pytest.raises(ValueError, match=r"dy has shape \(2, 8, 3, 4\); it must be \(2, 8, 5, 6\)"):
        convolve.backward_data(dy, w, x.shape, padding=1)
    with pytest.raises(ValueError, match=r"x_shape is 7; it must be a tuple of whole numbers"):
        convolve.backward_data(dy, w, 7)
    with pytest.raises(ValueError, match=r"x has shape \(2, 4, 5\); it must have the four axes NCHW"):
        convolve.backward_data(dy, w, x.shape[:3])
    with pytest.raises(ValueError, match=r"dy has shape \(2, 8, 3, 4\); it must be \(2, 8, 2, 2\)"):
        convolve.backward_filter(x, dy, w.shape, stride=2)
    with pytest.raises(ValueError, match=r"out has shape \(8, 4, 3, 3\); it must be \(8, 4, 1, 3\)"):
        convolve.backward_filter(x, cp.zeros((2, 8, 5, 4), np.float32), (8, 4, 1, 3), out=w)
    with pytest.raises(ValueError, match="there is no step 'direct' for backward_filter; choose 'auto' or one of"):
        convolve.backward_filter(x, dy, w.shape, step="direct")


def test_sizes_are_those_that_kernels_read():
    conv = Convolution(2, 6, 7, 5, 10, 3, 2, (1, 0), (2, 1), (1, 3), 2)
    found = sizes(conv)
    for name in ("n", "c", "h", "w", "k", "r", "s", "p", "q", "depth"):
        assert found[name][0] == getattr(conv, name)
    assert [found[name][0] for name in ("pad_h", "pad_w", "stride_h", "stride_w", "dilation_h", "dilation_w")] == [
        *conv.padding,
        *conv.stride,
        *conv.dilation,
    ]
    assert (found["group_c"][0], found["group_k"][0]) == (3, 5)


# -- headers ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded():
    """The recorded algorithms: "conv2_x" and "conv4_x" -> those of their 3 × 3 by (algorithm, dtype)."""
    value = recordings.values()["algorithms"]
    layers = {layer["layer"]: layer["rows"] for layer in value["layers"] if "3×3" in layer["layer"]}
    return {name.partition(" ")[0]: {(r["algorithm"], r["dtype"]): r for r in rows} for name, rows in layers.items()}


def header(name):
    text = (FOLDER / name).read_text(encoding="utf-8").partition("#include")[0]
    return " ".join(line.removeprefix("//").strip() for line in text.splitlines())


def test_the_headers_give_the_recorded_times(recorded):
    flops = {
        layer.name.partition(" ")[0]: layer.convolution.flops
        for layer in networks.convolutions()
        if "3×3" in layer.name
    }
    for file, key, rate in (
        ("steps/1_direct.cu", ("direct", "float32"), "{:.1f} and {:.1f} TFLOP/s"),
        ("steps/2_im2col.cu", ("im2col", "float32"), "{:.0f} and {:.0f} TFLOP/s"),
        ("steps/3_implicit_gemm.cu", ("implicit_gemm", "float32"), "{:.0f} and {:.0f} TFLOP/s"),
        ("steps/4_mma_nhwc.cu", ("mma_nhwc", "float16"), "{:.0f} and {:.0f} TFLOP/s"),
        ("beside/winograd.cu", ("winograd", "float32"), ""),
    ):
        seconds = {layer: recorded[layer][key]["seconds"] for layer in ("conv2_x", "conv4_x")}
        text = header(file)
        for taken in seconds.values():
            assert f"{taken * 1e6:.0f} µs for " in text, (file, taken)
        assert rate.format(*(flops[layer] / taken / 1e12 for layer, taken in seconds.items())) in text, file


def test_the_headers_give_the_recorded_comparisons(recorded):
    two, four = recorded["conv2_x"], recorded["conv4_x"]

    def each(text, function):
        return text.format(function(two), function(four))

    def ratio(one, other):
        return lambda rows: rows[one]["seconds"] / rows[other]["seconds"]

    step3, mma, by_winograd = ("implicit_gemm", "float32"), ("mma_nhwc", "float16"), ("winograd", "float32")
    half, single = ("tensor cores", "float16"), ("multiply-adds", "float32")  # cuDNN's
    numba = each("{:.0f} and {:.0f} µs", lambda rows: rows["numba_direct", "float32"]["seconds"] * 1e6)
    assert numba in header("steps/1_direct.cu")
    assert f"{two['im2col', 'float32']['workspace_bytes'] / 1e6:.0f} MB" in header("steps/2_im2col.cu")
    text = each("took {:.0f} and {:.0f} µs", lambda rows: rows[single]["seconds"] * 1e6)
    assert text in header("steps/3_implicit_gemm.cu")
    assert each("{:.2f} and {:.2f} of cuDNN's fastest plan", ratio(half, mma)) in header("steps/4_mma_nhwc.cu")
    text = header("beside/winograd.cu")
    assert f"{two[by_winograd]['workspace_bytes'] / 1e6:.0f} MB" in text
    assert each("{:.2f} and {:.2f} of step 3's time", ratio(by_winograd, step3)) in text
    for key in (by_winograd, step3):
        assert (
            each("{:.1e} and {:.1e}", lambda rows, key=key: rows[key]["relative_error"]).replace("e-07", "e-7") in text
        )

"""`draw_touched`: threads, elements outside and wrong ones, read back from the figure."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex

from tests.support.figure_shapes import texts
from warplab import CudaSource, cuda
from warplab.draw.grid import BLOCK_COLOURS
from warplab.draw.style import ORANGE
from warplab.draw.touched import draw_touched

CODE = """\
extern "C" __global__ void shift(const float *x, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i + 1];
}
extern "C" __global__ void plane(float *out) { out[4 * threadIdx.y + threadIdx.x] = 1; }
extern "C" __global__ void reversed(const float *x, float *out) {
    __shared__ float tile[4];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[3 - threadIdx.x];
}
extern "C" __global__ void forever(float *out) { for (;;) out[0] += 1; }
extern "C" __global__ void wide(const float4 *x, float4 *out) { *out = *x; }
extern "C" __global__ void racing(float *out) { out[1] += threadIdx.x; }
extern "C" __global__ void nothing(float *out) { }
"""
X = np.arange(6, dtype=np.float32)


def drawn(kernel, grid, block, arguments, expected=None):
    return draw_touched(CudaSource(CODE, kernel), grid, block, arguments, expected)


def cells(figure):
    """Face, edge and text of each element."""
    boxes = [patch for patch in figure.axes[0].patches]
    inside = [text.get_text() for text in figure.axes[0].texts if text.get_ha() == "center"]
    return [
        (to_hex(box.get_facecolor()).upper(), to_hex(box.get_edgecolor()).upper(), text)
        for box, text in zip(boxes, inside, strict=True)
    ]


def red(figure):
    return [text for _, edge, text in cells(figure) if edge == ORANGE]


def test_an_element_of_many_threads_holds_the_first_and_the_last():
    assert cells(drawn("racing", 1, 6, {"out": X}))[1][-1] == "0\n…5"
    assert cells(drawn("racing", 2, 4, {"out": X}))[1][-1] == "0\n+7"


def test_an_element_holds_its_thread_in_the_colour_of_its_block():
    arguments = {"x": np.zeros(7, np.float32), "out": X.copy(), "n": np.int32(6)}
    figure = drawn("shift", 2, 4, arguments, {"out": np.zeros(6)})
    assert [text for *_, text in cells(figure)] == ["", *"012301", *"012301"]
    faces = [face for face, *_ in cells(figure)][-6:]
    assert faces == [BLOCK_COLOURS[0]] * 4 + [BLOCK_COLOURS[1]] * 2
    assert not red(figure)
    assert "shift, 2 blocks of 4 threads" in texts(figure)
    assert (arguments["out"] == X).all()


def test_what_lies_outside_is_drawn_and_named():
    figure = drawn("shift", 1, 8, {"x": X, "out": X.copy(), "n": np.int32(8)})
    assert red(figure) == ["5", "6", "7", "6", "7"]
    assert "x[6], loaded by thread 5 of block 0, lies outside x (and 2 more)" in texts(figure)
    assert "out[6], stored by thread 6 of block 0, lies outside out (and 1 more)" in texts(figure)


def test_wrong_elements_and_those_of_no_thread_are_red():
    figure = drawn("shift", 1, 4, {"x": X, "out": X.copy(), "n": np.int32(6)}, {"out": [1, 9, 3, 4, 7, 7]})
    assert red(figure) == ["1", "", ""]
    assert "out[1], stored by thread 1 of block 0, is 2 in place of 9 (and 2 more are wrong)" in texts(figure)
    figure = drawn("nothing", 1, 4, {"out": X.copy()}, {"out": X + 1})
    assert "out[0] was stored by no thread (and 5 more are wrong)" in texts(figure)
    figure = drawn("nothing", 1, 2, {"out": X[:2].copy()}, {"out": X[:2] + 1})
    assert "out[0] was stored by no thread (and 1 more is wrong)" in texts(figure)


def test_a_wide_access_touches_several_elements():
    figure = drawn("wide", 1, 1, {"x": X[:4], "out": X.copy()}, {"out": X})
    assert [text for *_, text in cells(figure)] == [*"0000", *"0000", "", ""]


def test_a_block_of_two_dimensions_is_named_by_both():
    figure = drawn("plane", 1, (4, 2), {"out": np.zeros((3, 4), np.float32)}, {"out": np.ones((3, 4))})
    assert [text for *_, text in cells(figure)][:8] == [f"{x},{y}" for y in range(2) for x in range(4)]
    assert red(figure) == [""] * 4
    assert "out[2, 0] was stored by no thread" in texts(figure)
    assert "1 block of 4 × 2 threads" in texts(figure).replace("\u00d7", "×")


def test_shared_memory_is_drawn_as_stored_and_as_loaded():
    figure = drawn("reversed", 1, 4, {"x": X[:4], "out": X[:4].copy()}, {"out": X[3::-1]})
    assert "shared memory of block 0, stored" in texts(figure)
    assert [text for *_, text in cells(figure)][-8:] == [*"0123", *"3210"]
    assert not red(figure)


def test_a_race_is_told_by_elements_as_bytes_are_those_of_other_memory():
    said = texts(drawn("racing", 1, 32, {"out": X.copy()}))
    assert "element 1 of `out`" in said
    assert "byte" not in said


def test_a_kernel_that_does_not_run_is_drawn_with_the_reason():
    figure = drawn("forever", 1, 1, {"out": X.copy()}, {"out": X})
    assert "forever was stopped: " in texts(figure)
    assert not red(figure)

    @cuda.jit
    def empty(out):
        pass

    @cuda.jit
    def wrong(out):
        out[cuda.threadIdx] = 1

    assert "wrong does not run: TypingError" in texts(draw_touched(wrong, 1, 8, {"out": X.copy()}))
    assert red(draw_touched(empty, 1, 8, {"out": X.copy()}, {"out": X + 1})) == [""] * 6


def test_large_arrays_are_refused():
    with pytest.raises(ValueError, match="out has 129 elements; draw_touched draws at most 128"):
        drawn("nothing", 1, 1, {"out": np.zeros(129, np.float32)})

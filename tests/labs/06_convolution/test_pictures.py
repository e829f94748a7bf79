"""Lab 06's pictures: what they show of a trace or of arithmetic, and what they refuse."""

import math

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from kernels.convolution.definition import reference
from kernels.convolution.definition.geometry import Convolution
from kernels.convolution.definition.reference import place
from kernels.convolution.lesson import diagrams
from kernels.convolution.lesson.treemap import Box, squarified
from tests.support.random_inputs import generator
from warplab import cuda, simulate

WHOLE = Box(2, 3, 8, 5)


@pytest.mark.parametrize("values", [[1.0], [3, 3, 2, 1], [6, 6, 4, 3, 2, 2, 1], [100, 1, 1e-6]])
def test_a_treemap_fills_its_box_in_proportion(values):
    boxes = squarified(values, WHOLE)
    for value, box in zip(values, boxes, strict=True):
        assert box.width * box.height == pytest.approx(40 * value / sum(values))
        assert box.x >= 2 - 1e-9
        assert box.y >= 3 - 1e-9
        assert box.x + box.width <= 10 + 1e-9
        assert box.y + box.height <= 8 + 1e-9
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            apart_x = a.x + a.width <= b.x + 1e-9 or b.x + b.width <= a.x + 1e-9
            apart_y = a.y + a.height <= b.y + 1e-9 or b.y + b.height <= a.y + 1e-9
            assert apart_x or apart_y


def test_a_treemap_of_equal_values_is_near_to_squares():
    for box in squarified([1] * 12, Box(0, 0, 4, 3)):
        assert (box.width, box.height) == pytest.approx((1, 1))


@pytest.mark.parametrize("values", [[1, 2], [1, 0], [1, -1]])
def test_a_treemap_wants_positive_values_in_order(values):
    with pytest.raises(ValueError, match="positive, the largest first"):
        squarified(values, WHOLE)


@pytest.mark.parametrize(
    "conv",
    [
        Convolution(1, 3, 7, 7, 1, 3, 3, (1, 1)),
        Convolution(1, 2, 8, 8, 1, 5, 5, (3, 3), (2, 2)),
        Convolution(1, 1, 4, 4, 1, 1, 1, (0, 0), (3, 3)),
    ],
)
def test_the_index_map_makes_a_product_of_the_convolution(conv):
    rng = generator()
    x, w = (rng.integers(-8, 9, shape) for shape in (conv.x_shape(), conv.w_shape()))
    sizes = conv.h, conv.r, conv.p, conv.padding[0], conv.stride[0]
    sources = np.array([[place(i, j, *sizes) for j in range(conv.p * conv.q)] for i in range(conv.depth)])
    matrix = np.where(sources < 0, 0, x.ravel()[sources])
    y = w.reshape(conv.k, conv.depth) @ matrix
    np.testing.assert_array_equal(y.reshape(conv.y_shape()), reference.forward(x, w, conv))


@cuda.jit
def copied(x, out):
    i = cuda.grid(1)
    out[i] = x[2 * i] + x[2 * i]


def traced(n=32):
    return simulate(copied, 1, n, (np.zeros(2 * n, np.float32), np.zeros(n, np.float32)))


def texts(figure):
    return [text.get_text() for ax in figure.axes for text in ax.texts]


def test_the_picture_of_loads_counts_them():
    conv = Convolution(1, 1, 8, 8, 1, 1, 1)
    numbers = texts(diagrams.draw_gather(traced(), conv))
    assert len(numbers) == 32  # every other element
    assert set(numbers) <= {"1", "2"}  # the compiler may load once
    times = diagrams.times_loaded(traced(), conv)
    assert sorted(map(str, times[times > 0])) == sorted(numbers)
    assert (times.reshape(-1)[1::2] == 0).all()
    with pytest.raises(ValueError, match="the trace of copied holds no load of w by block 0"):
        diagrams.draw_gather(traced(), conv, array="w")


def test_the_picture_of_layouts_counts_sectors():
    figure = diagrams.draw_layouts({"every other": traced()})
    assert figure.axes[0].get_title(loc="left") == "every other: 8 sectors, 50% used"
    assert diagrams.sectors_loaded(traced()) == 8
    with pytest.raises(ValueError, match="holds no load of w by warp 0"):
        diagrams.draw_layouts({"none": traced()}, array="w")


def test_the_picture_of_winograds_tiles_wants_whole_tiles():
    readers = [int(text) for text in texts(diagrams.draw_winograd_tiles(6))]
    assert sum(readers) == 9 * 16  # nine tiles of 4 × 4
    for outputs in (2, 5):
        with pytest.raises(ValueError, match="an even number, at least 4"):
            diagrams.draw_winograd_tiles(outputs)


def test_the_picture_of_im2col_says_how_often_an_element_is_in_the_matrix():
    conv = Convolution(1, 1, 4, 4, 1, 3, 3, (1, 1))
    sources = np.array([[place(i, j, 4, 3, 4, 1, 1) for j in range(16)] for i in range(9)])
    figure = diagrams.draw_im2col(conv, sources, 5)
    assert figure.axes[1].get_title(loc="left") == "matrix: element 5 is in it 9 times"
    cells = [to_hex(cell.get_facecolor()).upper() for cell in figure.axes[1].patches if cell.get_width() == 1]
    fills = np.select([sources == 5, sources < 0], [diagrams.ORANGE, diagrams.PADDING], "#FFFFFF")
    assert cells == list(map(str.upper, fills.ravel()))


@pytest.mark.parametrize(
    "conv",
    [
        Convolution(1, 4, 8, 8, 1, 3, 3, (1, 1)),
        Convolution(1, 1, 9, 6, 1, 3, 2, (0, 1), (2, 1), (2, 1)),
        Convolution(1, 2, 5, 5, 1, 1, 1),
    ],
)
def test_pictures_of_arithmetic_take_any_convolution(conv):
    assert isinstance(diagrams.draw_tile(conv, 0, 0), Figure)
    assert isinstance(diagrams.draw_windows({"one": conv, "the same": conv}), Figure)
    rng = generator()
    x, w = rng.integers(0, 5, (conv.h, conv.w)), rng.integers(0, 5, (conv.r, conv.s))
    single = Convolution(1, 1, conv.h, conv.w, 1, conv.r, conv.s, conv.padding, conv.stride, conv.dilation)
    y = reference.forward(x[None, None], w[None, None], single)[0, 0]
    figure = diagrams.draw_sum(x, w, y, (conv.p - 1, 0), single)
    assert len(texts(figure)) == math.prod(conv.room) + conv.r * conv.s + conv.p * conv.q + 2


def test_the_wavefronts_of_a_recurrent_network_are_its_diagonals():
    numbers = [int(text) for text in texts(diagrams.draw_wavefronts(3, 5)) if text]
    assert sorted(numbers) == sorted(layer + step + 1 for layer in range(3) for step in range(5))

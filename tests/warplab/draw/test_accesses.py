"""`draw_accesses`: its marks, bands and numbers, read back from the figure."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.support.figure_shapes import area, boxes, png, titles
from tests.support.synthetic_profiles import Session, access, launch_of, sectors_of, vector_multiply
from warplab import simulator
from warplab.compile.nvrtc import compile_cuda
from warplab.draw.accesses import OP_COLOURS, UNUSED, USED, draw_accesses

CODE = """\
extern "C" __global__ void scalar(const float *a, const float *b, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] * b[i];
}
extern "C" __global__ void strided(const float *a, const float *b, float *out, int n) {
    int i = 3 * (blockIdx.x * blockDim.x + threadIdx.x) + 1;
    if (i < n) out[i] = a[i] * b[i];
}
extern "C" __global__ void grid_stride(const float *a, const float *b, float *out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = a[i] * b[i];
}
extern "C" __global__ void vectors(const float4 *a, const float4 *b, float4 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 x = a[i], y = b[i];
    out[i] = make_float4(x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w);
}
"""


@pytest.fixture(scope="module")
def program():
    return simulator.load(compile_cuda(CODE, name="test.cu"), {"test.cu": CODE})


def simulated(program, kernel: str, n: int, grid: int, block: int):
    device = simulator.Device(memory_bytes=1 << 24)
    params = []
    for name in ("a", "b", "out"):
        address = device.memory.allocate(4 * n, name=name)
        device.memory.view(address, 4 * n)[:] = 0
        device.memory.mark_initialized(address, 4 * n)
        params.append(np.uint64(address).tobytes())
    return device.launch(
        program.entries[kernel], grid=(grid, 1, 1), block=(block, 1, 1), params=[*params, np.int32(n).tobytes()]
    )


def test_coalesced_accesses():
    figure = draw_accesses(vector_multiply())
    assert [t.split(",")[0] for t in titles(figure)] == ["load a", "load b", "store out"]
    assert all("(line 4)\n4 sectors per request, 100 % used" in t for t in titles(figure))
    assert "first 32 of 1\u202f048\u202f576 threads" in figure.get_suptitle()
    assert "whole warps" not in figure.get_suptitle()
    for ax, op in zip(figure.axes, ("load", "load", "store"), strict=True):
        marks = boxes(ax, OP_COLOURS[op])
        assert [m[0] for m in marks] == [4 * t for t in range(32)]
        assert [m[1] for m in marks] == pytest.approx([t - 0.4 for t in range(32)])
        assert area(boxes(ax, USED)) == 128 * 32
        assert boxes(ax, UNUSED) == []


PATTERNS = {
    "stride 2": (lambda t: 2 * t, 4, 8),
    "stride 8": (lambda t: 8 * t, 4, 32),
    "stride 32": (lambda t: 32 * t, 4, 32),
    "misaligned": (lambda t: t + 1, 4, 5),
    "reversed": (lambda t: 31 - t, 4, 4),
    "one address": (lambda t: 7, 4, 1),
    "float4": (lambda t: t, 16, 16),
    "double": (lambda t: t, 8, 8),
    "bytes": (lambda t: t, 1, 1),
    "before the array": (lambda t: t - 4, 4, 5),
    "far apart": (lambda t: t * t * 100_003, 4, 32),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns(name):
    element, width, expected = PATTERNS[name]
    one = access(element, width=width)
    assert sectors_of(one) == expected
    figure = draw_accesses(launch_of([one]))
    ax = figure.axes[0]
    asked = len({element(t) for t in range(32)}) * width
    assert (
        f"{expected} sector{'s' * (expected > 1)} per request, {100 * asked / (32 * expected):.3g} % used"
        in titles(figure)[0]
    )
    assert len(boxes(ax, OP_COLOURS["load"])) == 32
    # The bands hold every fetched byte once, used or not, over the 32 rows of the warp.
    assert area(boxes(ax, USED)) == pytest.approx(asked * 32)
    assert area(boxes(ax, UNUSED)) == pytest.approx((32 * expected - asked) * 32)
    assert len(png(figure)) < 60_000


def test_a_mark_lies_in_the_band_of_its_sector_also_where_addresses_are_cut_out():
    figure = draw_accesses(launch_of([access(lambda t: 1000 * t)]))
    marks, bands = boxes(figure.axes[0], OP_COLOURS["load"]), boxes(figure.axes[0], USED)
    for (left, _, _, _), (start, _, width, _) in zip(marks, bands, strict=True):
        assert left == start
        assert width == 4
    assert figure.axes[0].get_xlabel().endswith(", gaps left out")
    ticks = [label.get_text().replace("\N{NARROW NO-BREAK SPACE}", "") for label in figure.axes[0].get_xticklabels()]
    assert all(int(tick) % 8 == 0 for tick in ticks)
    gaps = {b - a for a, b in pairwise(int(t) for t in ticks)}
    assert max(gaps) - min(gaps) <= 8


def test_steps_of_a_grid_stride_loop_have_their_own_colours():
    figure = draw_accesses(launch_of([access(lambda t, k=k: t + 1024 * k) for k in range(3)]))
    ax = figure.axes[0]
    assert boxes(ax, OP_COLOURS["load"]) == []
    colours = {tuple(c.get_facecolor()[0]) for c in ax.collections if len(c.get_paths()) == 32}
    assert len(colours) == 3
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[1:] == ["1st access", "2nd", "3rd"]


def test_more_steps_than_fit_are_announced():
    figure = draw_accesses(launch_of([access(lambda t, k=k: t + 32 * k) for k in range(20)]))
    assert "the first 8 of 20 accesses of each thread" in figure.get_suptitle()
    figure = draw_accesses(launch_of([access(lambda t, k=k: 8 * t + 512 * k) for k in range(20)]))
    assert "the first 2 of 20 accesses of each thread" in figure.get_suptitle()


def test_bytes_that_a_later_access_uses_are_not_called_unused():
    figure = draw_accesses(launch_of([access(lambda t, k=k: 8 * t + k) for k in range(8)]))
    assert boxes(figure.axes[0], UNUSED) == []
    assert "32 sectors per request, 12.5 % used" in titles(figure)[0]


def test_several_warps_and_blocks():
    launch = launch_of([access(lambda t: t, warp=w) for w in range(2)], block=(64, 1, 1))
    assert len(boxes(draw_accesses(launch, threads=64).axes[0], OP_COLOURS["load"])) == 64
    assert len(boxes(draw_accesses(launch, threads=8).axes[0], OP_COLOURS["load"])) == 8
    one = access(lambda t: t)
    one.block, one.thread = np.arange(32) // 8, np.arange(32) % 8
    figure = draw_accesses(launch_of([one], grid=(4, 1, 1), block=(8, 1, 1)))
    assert "1 sector per request" in titles(figure)[0]
    marks = boxes(figure.axes[0], OP_COLOURS["load"])
    assert [m[1] for m in marks] == pytest.approx([t - 0.4 for t in range(32)])


def test_idle_lanes_have_an_empty_row():
    one = access(lambda t: t)
    one.block, one.thread, one.address = one.block[:20], one.thread[:20], one.address[:20]
    ax = draw_accesses(launch_of([one])).axes[0]
    assert len(boxes(ax, OP_COLOURS["load"])) == 20
    assert ax.get_ylim() == (31.5, -0.5)


def test_memory_without_a_name():
    one = access(lambda t: t, array=None, start=0)
    one.address = one.address + np.uint64(0x7F0000000010)
    figure = draw_accesses(launch_of([one]))
    assert "unnamed memory" in titles(figure)[0]
    assert "5 sectors per request, 80 % used" in titles(figure)[0]


def test_choosing_array_and_line():
    launch = launch_of(
        [access(lambda t: t, line=3), access(lambda t: t, array="b", line=4), access(lambda t: t, line=5)]
    )
    assert [t.split(",")[0] for t in titles(draw_accesses(launch, array="b"))] == ["load b"]
    assert "(line 5)" in titles(draw_accesses(launch, line=5))[0]
    assert "(line 3, 5)" in titles(draw_accesses(launch, array="a"))[0]


def test_what_cannot_be_drawn_is_refused():
    launch = vector_multiply()
    with pytest.raises(ValueError, match=r"array='c', line=None; it has the arrays a, b, out and the lines 4"):
        draw_accesses(launch, array="c")
    with pytest.raises(ValueError, match="holds no access to global memory"):
        draw_accesses(vector_multiply(accesses=[]))
    with pytest.raises(ValueError, match="threads is 0"):
        draw_accesses(launch, threads=0)
    with pytest.raises(ValueError, match="no launch"):
        draw_accesses(Session([]))
    assert "launch 1 of 2" in draw_accesses(Session([launch, launch])).get_suptitle()


def test_many_arrays_are_drawn_in_two_rows_and_the_rest_announced():
    launch = launch_of([access(lambda t: t, array=f"x{i}", start=0x1000 * (i + 1)) for i in range(8)])
    figure = draw_accesses(launch)
    assert len(titles(figure)) == 6
    assert "2 more panels: choose with array=" in figure.get_suptitle()


def test_the_numbers_above_a_panel_are_those_of_the_drawn_threads():
    launch = launch_of([access(lambda t: t), access(lambda t: 8 * t, warp=1)], grid=(1, 1, 1), block=(64, 1, 1))
    figure = draw_accesses(launch)
    assert "first 32 of 64 threads" in figure.get_suptitle()
    assert "\n4 sectors per request, 100 % used" in titles(figure)[0]
    figure = draw_accesses(launch, threads=64)
    assert figure.get_suptitle().endswith(", 64 threads")
    assert "\n4 to 32 sectors per request" in titles(figure)[0]
    figure = draw_accesses(launch, threads=16)
    assert "first 16 of 64 threads, sectors per request: of whole warps" in figure.get_suptitle()
    assert "\n4 sectors per request" in titles(figure)[0]


@pytest.mark.parametrize(
    ("kernel", "n", "grid", "block", "threads"),
    [
        ("scalar", 1024, 8, 128, 128),
        ("strided", 384, 2, 64, 128),
        ("grid_stride", 1024, 1, 128, 32),
        ("vectors", 512, 1, 128, 128),
    ],
)
def test_pictures_of_simulated_launches_agree_with_the_counters(program, kernel, n, grid, block, threads):
    launch = simulated(program, kernel, n, grid, block)
    figure = draw_accesses(launch, threads=threads)
    assert [t.split(",")[0] for t in titles(figure)] == ["load a", "load b", "store out"]
    c = launch.counts
    # All warps that these launches trace do the same, so that the mean over the launch is the picture's number.
    numbers = titles(figure)[0].split("\n")[1].split(" sector")[0].split(" to ")
    assert int(numbers[0]) <= c.sectors_per_load_request <= int(numbers[-1])
    assert int(numbers[0]) == {"scalar": 4, "strided": 12, "grid_stride": 4, "vectors": 16}[kernel]
    width, height = figure.get_size_inches() * figure.dpi
    assert width <= 900
    assert height <= 500
    assert len(png(figure)) < 60_000

"""What the pictures show, read back from the figure's own shapes and texts."""

from __future__ import annotations

import base64
import io
from itertools import pairwise

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from nbclient import NotebookClient

from tests.support.synthetic_profiles import FILE, Session, access, launch_of, sectors_of, vector_multiply
from warplab import simulator
from warplab.compile import compilers
from warplab.draw.accesses import OP_COLOURS, UNUSED, USED, draw_accesses
from warplab.draw.grid import draw_grid
from warplab.draw.heat_map import heat_map
from warplab.draw.roofline import draw_roofline
from warplab.simulator.count.counters import Counts

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
    return simulator.load(compilers.compile_cuda(CODE, name="test.cu"), {"test.cu": CODE})


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


@pytest.fixture(autouse=True)
def no_figure_left_open():
    yield
    assert plt.get_fignums() == []


def boxes(ax, colour) -> list[tuple[float, float, float, float]]:
    """(left, top, width, height) of the rectangles of one face colour in the axes' collections, left to right."""
    found = []
    for collection in ax.collections:
        face = collection.get_facecolor()
        if len(face) and np.allclose(face[0], to_rgba(colour), atol=1e-6):
            for path in collection.get_paths():
                (x0, y0), (x1, y1) = path.vertices.min(axis=0), path.vertices.max(axis=0)
                found.append((x0, y0, x1 - x0, y1 - y0))
    return sorted(found)


def area(found) -> float:
    return sum(width * height for _, _, width, height in found)


def titles(figure) -> list[str]:
    return [ax.get_title(loc="left") for ax in figure.axes if ax.get_title(loc="left")]


def png(figure) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream)
    return stream.getvalue()


def test_coalesced_accesses():
    figure = draw_accesses(vector_multiply())
    assert [t.split(",")[0] for t in titles(figure)] == ["load a", "load b", "store out"]
    assert all("(line 4)\n4 sectors a request, 100 % used" in t for t in titles(figure))
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
        f"{expected} sector{'s' * (expected > 1)} a request, {100 * asked / (32 * expected):.3g} % used"
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
    assert figure.axes[0].get_xlabel().endswith(", cut")
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
    assert "32 sectors a request, 12.5 % used" in titles(figure)[0]


def test_several_warps_and_blocks():
    launch = launch_of([access(lambda t: t, warp=w) for w in range(2)], block=(64, 1, 1))
    assert len(boxes(draw_accesses(launch, threads=64).axes[0], OP_COLOURS["load"])) == 64
    assert len(boxes(draw_accesses(launch, threads=8).axes[0], OP_COLOURS["load"])) == 8
    one = access(lambda t: t)
    one.block, one.thread = np.arange(32) // 8, np.arange(32) % 8
    figure = draw_accesses(launch_of([one], grid=(4, 1, 1), block=(8, 1, 1)))
    assert "1 sector a request" in titles(figure)[0]
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
    assert "5 sectors a request, 80 % used" in titles(figure)[0]


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
    assert "\n4 sectors a request, 100 % used" in titles(figure)[0]
    figure = draw_accesses(launch, threads=64)
    assert figure.get_suptitle().endswith(", 64 threads")
    assert "\n4 to 32 sectors a request" in titles(figure)[0]
    figure = draw_accesses(launch, threads=16)
    assert "first 16 of 64 threads, sectors a request: of whole warps" in figure.get_suptitle()
    assert "\n4 sectors a request" in titles(figure)[0]


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


def test_heat_map_shows_lines_and_numbers():
    figure = heat_map(vector_multiply())
    texts = [text.get_text() for text in figure.axes[0].texts]
    for shown in ("if (i < n)", "    out[i] = a[i] * b[i];", "262 144", "393 216", "4.00", "65 536"):
        assert shown.replace("2 1", "2\u202f1").replace("3 2", "3\u202f2").replace("5 5", "5\u202f5") in texts
    cells = [p for p in figure.axes[0].patches if isinstance(p, Rectangle)]
    column = sorted({p.get_x() for p in cells})[0]
    brightness = {p.get_y(): sum(p.get_facecolor()[:3]) for p in cells if p.get_x() == column}
    rows = sorted(brightness)
    assert brightness[rows[2]] < brightness[rows[0]] < brightness[rows[1]]
    assert len(cells) == 5


def test_heat_map_takes_other_metrics():
    texts = [t.get_text() for t in heat_map(vector_multiply(), "flops_f32").axes[0].texts]
    assert "1\u202f048\u202f576" in texts
    assert "sectors" in texts
    texts = [t.get_text() for t in heat_map(vector_multiply(), ["warp_efficiency"]).axes[0].texts]
    assert texts.count("100.0 %") == 3
    assert "sectors" not in texts
    with pytest.raises(ValueError, match=r"no metric named 'speed'; the known ones are sectors, .*warp_instructions"):
        heat_map(vector_multiply(), "speed")
    with pytest.raises(ValueError, match="no counts by source line"):
        heat_map(vector_multiply(lines={}))


def test_heat_map_of_a_long_kernel_keeps_its_size():
    lines = {(FILE, n): Counts(warp_instructions=n) for n in range(1, 400)}
    source = "\n".join(f"x[{n}] = $y$ * {'long ' * 40};" for n in range(1, 400))
    figure = heat_map(vector_multiply(lines=lines, sources={FILE: source}))
    assert figure.get_size_inches()[1] * figure.dpi <= 500
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert "399" in texts
    assert "100" not in texts
    assert max(len(t) for t in texts) < 80


def hatched(figure) -> int:
    return sum(bool(patch.get_hatch()) for patch in figure.axes[0].patches)


def shown(figure) -> str:
    return "\n".join(text.get_text() for text in figure.axes[0].texts)


def test_grid_with_a_guard():
    figure = draw_grid(4, 8, 29)
    assert hatched(figure) == 3
    assert "hatched: 3 threads with i \N{GREATER-THAN OR EQUAL TO} n" in shown(figure)
    assert "block 3" in shown(figure)
    assert hatched(draw_grid((4,), (8,), 32)) == 0


def test_grid_with_a_stride_and_one_that_is_too_small():
    figure = draw_grid(2, 8, 37, grid_stride=True)
    assert hatched(figure) == 3 * 16 - 37
    assert "pass 3: i + 32" in shown(figure)
    too_small = shown(draw_grid(2, 8, 37))
    assert "elements 16 to 36 have no thread" in too_small
    assert "100 passes, the first 4 drawn" in shown(draw_grid(1, 10, 1000, grid_stride=True))
    cut = draw_grid(1, 10, 999, grid_stride=True)
    assert hatched(cut) == 0
    assert "; 1 thread in the last pass with i" in shown(cut)


def test_large_grids_are_cut():
    figure = draw_grid(4096, 256, 1_000_000)
    assert "block 4\u202f095" in shown(figure)
    assert "hatched: 48\u202f576 threads" in shown(figure)
    assert len(figure.axes[0].patches) < 60


@pytest.mark.parametrize("wrong", [(0, 8, 8), (4, (8, 8), 8), (4, 8, -1), (2.5, 8, 8), (True, 8, 8)])
def test_grids_that_cannot_be_drawn(wrong):
    with pytest.raises(ValueError, match="takes a positive integer"):
        draw_grid(*wrong)


def test_roofline_places_predictions_and_measurements():
    launch = vector_multiply(blocks=1 << 20, gpu_seconds=1.165e-3, gpu_name="NVIDIA H100 80GB HBM3")
    ax = draw_roofline(launch, "H100").axes[0]
    points = {line.get_label(): line.get_xydata()[0] for line in ax.lines if line.get_marker() == "o"}
    assert [label.split(":")[1].split(",")[0] for label in points] == [" predicted", " measured"]
    predicted, measured = points.values()
    assert predicted == pytest.approx([1 / 12, 3.35e12 / 12])
    assert measured == pytest.approx([1 / 12, 2**28 / 1.165e-3])
    other = draw_roofline(launch, "V100").axes[0]
    assert [line.get_label() for line in other.lines if line.get_marker() == "o"][1:] == []


def test_roofline_leaves_out_what_has_no_place():
    copy = vector_multiply(counts=Counts(warp_instructions=1))
    with pytest.raises(ValueError, match="none can be placed"):
        draw_roofline(copy)
    ax = draw_roofline([copy, vector_multiply(), vector_multiply(kernel="second")]).axes[0]
    assert len([line for line in ax.lines if line.get_marker() == "o"]) == 2


def test_a_notebook_shows_each_picture_once(monkeypatch):
    # The kernel is to choose the notebook's own backend, as it does for a learner.
    monkeypatch.delenv("MPLBACKEND", raising=False)
    cell = nbformat.v4.new_code_cell("from warplab import draw_grid\ndraw_grid(2, 4, 7)")
    silent = nbformat.v4.new_code_cell("figure = figures.draw_grid(2, 4, 7)")
    notebook = nbformat.v4.new_notebook(cells=[cell, silent])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    images = [output.data["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})]
    assert len(images) == 1
    assert base64.b64decode(images[0]).startswith(b"\x89PNG")
    assert silent.outputs == []

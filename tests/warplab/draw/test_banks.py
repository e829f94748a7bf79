"""`draw_banks`: its wavefronts are those that the simulator counts, and the picture shows them."""

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from warplab import draw_banks, simulate
from warplab.draw.banks import Request
from warplab.launch.kernel_source import CudaSource

CODE = """
extern "C" __global__ void spread(float *out, int stride, int modulus) {
    __shared__ float words[1024];
    for (int k = threadIdx.x; k < 1024; k += 32) words[k] = k;
    __syncwarp();
    out[threadIdx.x] = words[threadIdx.x % modulus * stride];
}
template <typename T> __device__ void wide(T *out, T value, int stride, int modulus) {
    __shared__ T words[128];
    int t = threadIdx.x;
    words[t % modulus * stride] = value;
    __syncwarp();
    out[t] = words[t % modulus * stride];
}
extern "C" __global__ void wide_2(float2 *out, int stride, int modulus) {
    wide(out, make_float2(1, 2), stride, modulus);
}
extern "C" __global__ void wide_4(float4 *out, int stride, int modulus) {
    wide(out, make_float4(1, 2, 3, 4), stride, modulus);
}
"""


def spread(stride, modulus=32):
    return simulate(CudaSource(CODE, "spread"), 1, 32, (np.zeros(32, np.float32), np.int32(stride), np.int32(modulus)))


@pytest.mark.parametrize(
    ("stride", "modulus"), [(1, 32), (2, 32), (3, 32), (4, 32), (8, 32), (31, 32), (0, 32), (16, 5)]
)
def test_as_many_wavefronts_as_the_simulator_counts(stride, modulus):
    profile = spread(stride, modulus)
    figure = draw_banks(profile, op="load")
    (ax,) = figure.axes
    wavefronts = int(ax.get_title(loc="left").split("\n")[1].split()[0])
    assert wavefronts == profile.counts.shared_load_wavefronts
    cells = [p for p in ax.patches if isinstance(p, Rectangle)]
    assert [(p.get_x(), p.get_y()) for p in cells] == [(lane % modulus * stride % 32, lane) for lane in range(32)]
    assert len({p.get_facecolor() for p in cells}) == wavefronts


def test_a_panel_for_loads_and_one_for_stores():
    titles = [ax.get_title(loc="left") for ax in draw_banks(spread(2)).axes]
    assert titles == ["store, line 4\n1 wavefront", "load, line 6\n2 wavefronts"]
    assert [ax.get_title(loc="left") for ax in draw_banks(spread(2), line=6).axes] == titles[1:]


def test_another_warp():
    code = """extern "C" __global__ void two(float *out) {
        __shared__ float words[64];
        int t = threadIdx.x;
        words[t ^ (t / 32)] = t;
        __syncthreads();
        out[t] = words[63 - t];
    }"""
    launch = simulate(CudaSource(code, "two"), 1, 64, (np.zeros(64, np.float32),))
    (ax,) = draw_banks(launch, op="store", warp=1).axes
    assert [int(p.get_x()) for p in ax.patches if isinstance(p, Rectangle)] == [k ^ 1 for k in range(32)]


def test_words_that_lanes_share_are_served_once():
    words = np.array([0, 32, 0, 64, 5, 37, 5])
    assert Request("load", 1, np.arange(7), words).wavefronts[:, 0].tolist() == [0, 1, 0, 2, 0, 1, 0]


def wide(width, stride, modulus=32):
    arguments = np.zeros((32, width), np.float32), np.int32(stride), np.int32(modulus)
    return simulate(CudaSource(CODE, f"wide_{width}"), 1, 32, arguments, races=False)


@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize(("stride", "modulus"), [(1, 32), (2, 32), (3, 32), (4, 32), (0, 32), (1, 8), (2, 8), (1, 2)])
def test_wide_accesses_take_as_many_wavefronts_as_the_simulator_counts(width, stride, modulus):
    profile = wide(width, stride, modulus)
    for op in ("load", "store"):
        (ax,) = draw_banks(profile, op=op).axes
        head, cost = ax.get_title(loc="left").split("\n")
        assert head.endswith(f"{4 * width} bytes per lane")
        count, needed = int(cost.split()[0]), int(cost.split()[2])
        wavefronts = getattr(profile.counts, f"shared_{op}_wavefronts")
        assert (count, count - needed) == (wavefronts, getattr(profile.counts, f"shared_{op}_conflicts"))
        cells = [p for p in ax.patches if isinstance(p, Rectangle)]
        words = [(lane % modulus * stride * width + k, lane) for lane in range(32) for k in range(width)]
        assert [(p.get_x(), p.get_y()) for p in cells] == [(word % 32, lane) for word, lane in words]


def test_a_line_between_the_parts_of_a_warp_that_are_served_together():
    def lines(figure):
        return [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_linestyle() == "--"]

    assert lines(draw_banks(wide(4, 1), op="store")) == [8, 16, 24]
    assert lines(draw_banks(wide(2, 1), op="store")) == [16]
    assert lines(draw_banks(spread(1), op="load")) == []


def test_errors_say_what_the_trace_has():
    with pytest.raises(
        ValueError, match=r"no access to shared memory with line=7, op=None; it has: load in line 6, st"
    ):
        draw_banks(spread(1), line=7)
    with pytest.raises(ValueError, match="no access of warp 1"):
        draw_banks(spread(1), warp=1)

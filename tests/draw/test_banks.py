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
extern "C" __global__ void wide(float4 *out) {
    __shared__ float4 words[32];
    words[threadIdx.x] = make_float4(1, 2, 3, 4);
    out[threadIdx.x] = words[threadIdx.x];
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
    assert Request("load", 1, np.arange(7), words).wavefronts.tolist() == [0, 1, 0, 2, 0, 1, 0]


def test_errors_say_what_the_trace_has():
    with pytest.raises(
        ValueError, match=r"no access to shared memory with line=7, op=None; it has: load in line 6, st"
    ):
        draw_banks(spread(1), line=7)
    with pytest.raises(ValueError, match="no access of warp 1"):
        draw_banks(spread(1), warp=1)
    with pytest.raises(ValueError, match="wide accesses 16 bytes per lane there"):
        draw_banks(simulate(CudaSource(CODE, "wide"), 1, 32, (np.zeros((32, 4), np.float32),)))

"""`warplab.estimate`: what it shows, what it says of itself, and what it refuses."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from warplab import CudaSource, cp, estimate, profile
from warplab.compile.headers import COURSE_HEADERS
from warplab.draw.estimated_time import draw_estimate
from warplab.estimating import estimate as module
from warplab.hardware.cards import CARDS, card
from warplab.launch.simulate import simulate

SOURCE = r"""extern "C" __global__ void copy(const float *in, float *out, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i * stride];
}"""
COPY = CudaSource(SOURCE, "copy")
BLOCKS = 264


def run(stride: int = 1, **options):
    arrays = np.zeros(BLOCKS * 256 * stride, np.float32), np.zeros(BLOCKS * 256, np.float32)
    return simulate(COPY, BLOCKS, 256, (*arrays, np.int32(stride)), **options)


@pytest.fixture(scope="module")
def launch():
    return run()


@pytest.mark.parametrize("name", [one.name for one in CARDS.values() if one.rates])
def test_every_card_gets_an_estimate_that_says_it_is_one(launch, name: str) -> None:
    found = estimate(launch, name)
    assert found.seconds > 0
    assert found.limit in {r.name for r in found.resources}
    text = str(found)
    assert text.startswith(f"copy (264 × 256) on {card(name).full_name}: about ")
    assert "An estimate by arithmetic, no measurement." in text
    assert ("Not validated" in text) == (name not in module._published())


def test_the_label_gives_the_published_error(launch, monkeypatch) -> None:
    known = {"launches": 80, "mean_percent": 14.6, "within_30": 71, "device": "an H100", "date": "2026-11-21"}
    known["limits"] = {estimate(launch, "H100").limit: {"launches": 7, "mean_percent": 3.2}}
    monkeypatch.setattr(module, "_published", lambda: {"H100": known})
    text = estimate(launch, "H100").label
    assert "On 80 launches held out while it was built it was off by 15 % on average (71 within 30 %)" in text
    assert "(71 within 30 %), before its last change, on an H100, 2026-11-21;" in text
    assert estimate(launch, "V100").label.endswith(
        "Not validated for the V100: rates are published ones, or the H100's."
    )
    assert "The 7 of these launches with this limit (" in text
    assert ") were off by 3 % on average." in text


def test_longer_strides_take_longer_and_the_load_costs_most(launch) -> None:
    strided = run(16)
    assert estimate(strided).seconds > estimate(launch).seconds
    known = module.rates(card("H100"))
    lines = module._lines(strided, module.work_of(strided, card("H100")), known, "DRAM")
    assert lines[0].line == 3
    assert lines[0].code == "out[i] = in[i * stride];"
    assert sum(line.share for line in lines) == pytest.approx(1)


MIXED = r"""
extern "C" __global__ void mixed(const float *in, float *out) {
    float x = in[threadIdx.x], y = x;
#pragma unroll
    for (int i = 0; i < 16; i++) x = __sinf(x);
#pragma unroll
    for (int i = 0; i < 40; i++) y = y * 1.5f + x;
    out[threadIdx.x] = x + y;
}
"""


def test_lines_weigh_by_what_limits_the_launch() -> None:
    """Only the sines need the XU pipe, only the multiply-adds that of FMA, apart from one product before each sine."""
    found = simulate(CudaSource(MIXED, "mixed"), 4, 256, (np.ones(256, np.float32), np.zeros(256, np.float32)))
    known = module.rates(card("H100"))
    work = module.work_of(found, card("H100"))

    def share(limit: str, line: int) -> float:
        return {one.line: one.share for one in module._lines(found, work, known, limit)}.get(line, 0.0)

    assert share("XU pipe", 5) == 1.0
    assert share("FMA pipe", 7) > 0.6
    assert share("latency", 5) > share("latency", 7)
    assert share("latency", 4) == 0.0


def test_chains_limit_by_their_latency() -> None:
    """4096 multiply-adds in a row after one load: the loop is what a warp waits for."""
    source = CHAIN
    found = simulate(CudaSource(source, "chain"), 1, 32, (np.ones(32, np.float32), np.zeros(32, np.float32)))
    lines = estimate(found).lines
    assert estimate(found).limit == "latency"
    assert lines[0].line == 5
    assert lines[0].share > 0.8


CHAIN = r"""
extern "C" __global__ void chain(const float *in, float *out) {
    float x = in[threadIdx.x];
#pragma unroll 16
    for (int i = 0; i < 4096; i++) x = x * 0.5f + 1.0f;
    out[threadIdx.x] = x;
}
"""


UNKNOWN = r"""
__device__ __noinline__ float twice(float x) { return sqrtf(x) + 2 * x; }
extern "C" __global__ void shared_sum(const float *in, float *out) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, in[threadIdx.x]);
    __syncthreads();
    out[threadIdx.x] = sum;
}
extern "C" __global__ void sleeping(const float *in, float *out) {
    __nanosleep(100);
    out[threadIdx.x] = in[threadIdx.x];
}
extern "C" __global__ void fenced(const float *in, float *out) {
    out[threadIdx.x] = in[threadIdx.x];
    __threadfence_system();
}
extern "C" __global__ void local(const float *in, float *out) {
    float held[64];
    for (int i = 0; i < 64; i++) held[i] = i;
    held[(int)in[threadIdx.x] & 63] = in[0];
    out[threadIdx.x] = held[(int)(2 * in[threadIdx.x]) & 63];
}
extern "C" __global__ void calling(const float *in, float *out) {
    out[threadIdx.x] = twice(in[threadIdx.x]) + twice(in[0]);
}
"""


@pytest.mark.parametrize(
    ("kernel", "warning"),
    [
        ("shared_sum", "atomics in shared memory that try again"),
        ("sleeping", "the time asleep is not counted"),
        ("fenced", "a fence of system scope"),
        ("local", "local arrays of all threads on an SM need more than the L1"),
        ("calling", "calls functions that are not inlined"),
    ],
)
def test_it_says_what_the_model_does_not_know_of_a_kernel(launch, kernel: str, warning: str) -> None:
    assert not estimate(launch).warnings
    arrays = np.ones(64, np.float32), np.zeros(64, np.float32)
    found = estimate(simulate(CudaSource(UNKNOWN, kernel), 1, 64, arrays))
    assert [text for text in found.warnings if warning in text], found.warnings
    assert warning in str(found)
    assert warning in found._repr_html_()
    assert warning in draw_estimate(found).texts[0].get_text().replace("\n", " ")


def test_where_the_launch_itself_limits_no_line_is_to_blame() -> None:
    found = estimate(simulate(CudaSource('extern "C" __global__ void nothing() {}', "nothing"), 1, 32, ()))
    assert found.limit == "launch"
    assert not found.lines
    assert "L1 serves" not in str(found)


def test_a_launch_that_ran_on_a_gpu_is_shown_beside_its_measured_time(launch) -> None:
    timed = replace(launch, gpu_seconds=2 * estimate(launch).seconds, gpu_name="NVIDIA H100 80GB HBM3")
    found = estimate(timed)
    for shown in (str(found), found._repr_html_()):
        assert re.search(r"Measured on NVIDIA H100 80GB HBM3, once: [\d.]+ µs. The estimate: -50 %", shown)
    assert "Measured" not in str(estimate(timed, blocks=2))
    assert "Measured" not in str(estimate(launch))


def test_data_in_the_l2_come_sooner(launch) -> None:
    assert estimate(launch, warm=True).seconds < estimate(launch).seconds


def test_a_small_launch_stands_for_a_large_one_of_its_kind(launch) -> None:
    found = estimate(launch, blocks=1000)
    assert found.seconds > 10 * estimate(launch).seconds
    assert str(found).startswith("copy (264 × 256, 1000 times the blocks) on H100")
    whole = simulate(COPY, 4 * BLOCKS, 256, (*(np.zeros(4 * BLOCKS * 256, np.float32) for _ in range(2)), np.int32(1)))
    assert estimate(launch, blocks=4).seconds == pytest.approx(estimate(whole).seconds, rel=0.02)
    with pytest.raises(ValueError, match=r"blocks=0 and each=1\.0 multiply the launch; give positive numbers"):
        estimate(launch, blocks=0)


def test_the_notebook_shows_bars_and_the_label(launch) -> None:
    html = estimate(launch)._repr_html_()
    assert len(re.findall(r"min-width:1px", html)) == len(estimate(launch).resources)
    assert "An estimate by arithmetic, no measurement." in html


def test_the_picture_shows_every_resource_and_the_label(launch) -> None:
    found = estimate(launch)
    figure = draw_estimate(launch)
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == [r.name for r in found.resources[::-1]]
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert widths == pytest.approx([r.seconds for r in found.resources[::-1]])
    assert "no measurement" in figure.texts[0].get_text().replace("\n", " ")


CONFLICTS = r"""extern "C" __global__ void columns(const float *in, float *out) {
    __shared__ float tile[32][PITCH];
    for (int k = threadIdx.y; k < 32; k += 8) tile[k][threadIdx.x] = in[32 * k + threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 64; k++) sum += tile[threadIdx.x][k % 32];
    out[256 * blockIdx.x + 32 * threadIdx.y + threadIdx.x] = sum;
}"""


def test_passes_through_shared_memory_are_lifted_from_the_data_path_too() -> None:
    """Without its bank conflicts a kernel is much faster, so the marks of both must say so."""

    def found(pitch: int):
        source = CudaSource(CONFLICTS.replace("PITCH", str(pitch)), "columns")
        arrays = np.ones(1024, np.float32), np.zeros(264 * 256, np.float32)
        return estimate(simulate(source, 264, (32, 8), arrays), blocks=100)

    conflicting, padded = found(32), found(33)
    assert conflicting.limit in ("shared memory", "L1 data path")
    assert conflicting.lifted["shared memory"] == conflicting.lifted["L1 data path"] < 0.5 * conflicting.seconds
    assert padded.seconds < 0.5 * conflicting.seconds


TENSOR_MEMORY = """
#include <warplab/tcgen05.cuh>
extern "C" __global__ void borrow() {
    __shared__ unsigned given;
    take_columns<32>(&given);
    __syncthreads();
    give_columns<32>(given);
}
"""


@pytest.mark.parametrize("card", ["B200", "H100"])
def test_it_refuses_tensor_memory_in_a_sentence(card) -> None:
    """Its products passed for free, in the pipe of uniform registers."""
    source = CudaSource(TENSOR_MEMORY, "borrow", ("-arch=sm_100a", f"-I{COURSE_HEADERS}"))
    with pytest.raises(ValueError, match="no estimate for borrow: it uses tcgen05"):
        estimate(simulate(source, 1, 32, ()), card)


def test_it_refuses_products_that_the_card_has_no_tensor_cores_for() -> None:
    source = """#include <mma.h>
__global__ void product(const half* a, float* c) {
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, half, nvcuda::wmma::row_major> f;
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, half, nvcuda::wmma::row_major> g;
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> sum;
    nvcuda::wmma::fill_fragment(sum, 0);
    nvcuda::wmma::load_matrix_sync(f, a, 16);
    nvcuda::wmma::load_matrix_sync(g, a, 16);
    nvcuda::wmma::mma_sync(sum, f, g, sum);
    nvcuda::wmma::store_matrix_sync(c, sum, 16, nvcuda::wmma::mem_row_major);
}"""
    made = simulate(CudaSource(source, "product"), 1, 32, (np.ones(256, np.float16), np.zeros(256, np.float32)))
    assert estimate(made, "T4").seconds > 0
    with pytest.raises(ValueError, match="no estimate for product: the P100 has no tensor cores"):
        estimate(made, "P100")


def test_what_it_refuses() -> None:
    with pytest.raises(ValueError, match="no card is named 'H1'"):
        estimate(run(), "H1")
    with pytest.raises(ValueError, match="holds no counts, as counters were off"):
        estimate(run(counters=False))
    with profile() as p:
        pass
    with pytest.raises(ValueError, match=re.escape("estimate() takes one launch and the profile has 0")):
        estimate(p)
    with profile() as p:
        for _ in range(2):
            cp.RawKernel(SOURCE, "copy")(
                (1,), (256,), (cp.zeros(256, cp.float32), cp.zeros(256, cp.float32), np.int32(1))
            )
    with pytest.raises(ValueError, match="the profile has 2; pass one"):
        estimate(p)
    assert estimate(p[0]).seconds > 0

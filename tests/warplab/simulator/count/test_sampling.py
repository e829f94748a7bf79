"""Counters of a large launch from a sample of its blocks."""

import itertools

import numpy as np
import pytest

from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.report import profile_report
from warplab.simulator.count import sampling

CODE = r"""
extern "C" __global__ void scale(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = 2 * a[i];
}

extern "C" __global__ void reverse(const float* a, const float* table, float* b) {
  __shared__ float s[128];
  int start = blockIdx.x * 128, i = threadIdx.x;
  s[i] = a[start + i];
  __syncthreads();
  b[start + i] = s[127 - i] + table[i % 32];
}

extern "C" __global__ void long_rows(float* a) {
  for (int k = 0; k < blockIdx.x % 7; k++) a[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
"""


def both(entry: str, blocks: int, threads: int, args: tuple, wanted: int, **options):
    whole = simulate(CudaSource(CODE, entry), blocks, threads, args, **options)
    sampled = simulate(CudaSource(CODE, entry), blocks, threads, args, sample_blocks=wanted, **options)
    assert whole.sampled is None
    return whole, sampled


def same(whole, sampled) -> None:
    assert sampled.counts == whole.counts
    assert sampled.lines == whole.lines
    assert sampled.mix == whole.mix
    assert sampled.footprint == whole.footprint
    assert sampled.line_footprint == whole.line_footprint
    assert sampled.line_mix == whole.line_mix


@pytest.mark.parametrize("wanted", [3, 10, 64, 500])
def test_blocks_that_do_the_same_give_the_same_counters(wanted):
    a, b, table = np.zeros(1000 * 128, np.float32), np.zeros(1000 * 128, np.float32), np.ones(32, np.float32)
    whole, sampled = both("reverse", 1000, 128, (a, table, b), wanted)
    same(whole, sampled)
    ran, total = sampled.sampled
    assert total == 1000
    assert 3 <= ran <= max(3, wanted)
    assert whole.counts.shared_load_requests == 4000


def test_first_and_last_blocks_count_once():
    """The last block, half of whose threads have nothing to do, is in every sample."""
    n = 2000 * 64 - 40
    a, b = np.zeros(n, np.float32), np.zeros(n, np.float32)
    same(*both("scale", 2000, 64, (a, b, np.int32(n)), 32))


def test_memory_holds_the_sampled_blocks_only():
    n = 512 * 64
    a, b = np.ones(n, np.float32), np.zeros(n, np.float32)
    sampled = simulate(CudaSource(CODE, "scale"), 512, 64, (a, b, np.int32(n)), sample_blocks=16)
    written = b.reshape(512, 64)
    assert set(written.sum(axis=1)) == {0, 128}
    assert np.count_nonzero(written.any(axis=1)) == sampled.sampled[0] == 16
    assert written[0].all()
    assert written[-1].all()


def test_blocks_that_differ_are_estimated():
    whole, sampled = both("long_rows", 5000, 32, (np.zeros(5000 * 32, np.float32),), 400)
    assert sampled.counts != whole.counts
    assert sampled.counts.global_load_requests == pytest.approx(whole.counts.global_load_requests, rel=0.1)
    again = simulate(CudaSource(CODE, "long_rows"), 5000, 32, (np.zeros(5000 * 32, np.float32),), sample_blocks=400)
    assert again.counts == sampled.counts


def test_small_grids_run_whole():
    a, b = np.zeros(640, np.float32), np.zeros(640, np.float32)
    for wanted in (9, 10, 11):
        profile = simulate(CudaSource(CODE, "scale"), 10, 64, (a, b, np.int32(640)), sample_blocks=wanted)
        assert (profile.sampled is None) == (wanted >= 10)
    with pytest.raises(ValueError, match="sample_blocks must be at least 1"):
        simulator.Options(sample_blocks=0)


def test_errors_in_sampled_blocks_are_found():
    a, b = np.zeros(6400, np.float32), np.zeros(6300, np.float32)
    with pytest.raises(simulator.IllegalAddress, match=r"block \(98, 0, 0\)|block \(99, 0, 0\)"):
        simulate(CudaSource(CODE, "scale"), 100, 64, (a, b, np.int32(6400)), sample_blocks=16)


def test_the_report_says_so():
    n = 512 * 64
    a, b = np.ones(n, np.float32), np.zeros(n, np.float32)
    whole, sampled = both("scale", 512, 64, (a, b, np.int32(n)), 16)
    assert "blocks simulated" not in profile_report.text(whole)
    text = profile_report.text(sampled)
    assert "16 of 512" in next(line for line in text.splitlines() if line.startswith("blocks simulated"))
    assert "scaled" in text
    assert "scaled" in profile_report.html(sampled)


@pytest.mark.parametrize(("total", "step", "wanted"), [(1000, 128, 64), (1000, 4, 64), (10**9, 1, 9), (50, 128, 49)])
def test_runs_are_apart_and_start_and_end_with_the_grid(total, step, wanted):
    runs = sampling.split(total, step, wanted)
    assert runs[0].first == 0
    assert runs[-1].first + runs[-1].blocks == total
    assert all(a.first + a.blocks <= b.first for a, b in itertools.pairwise(runs))
    assert all(run.blocks <= step for run in runs)
    assert sum(run.blocks for run in runs) <= wanted
    assert sampling.split(total, step, wanted) == runs

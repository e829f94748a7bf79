"""Barriers that are deleted in public kernels: the record; and one drawn, deleted and judged, in a program here."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from evidence.cuda_programs import barriers, run
from evidence.cuda_programs.read import READ_BARRIERS

RECORD = json.loads(barriers.RECORD.read_text(encoding="utf-8"))

PROGRAM = """#include <cstdio>
// __global__ void not_here() { __syncthreads(); }
__device__ void of_all() { __syncthreads(); }
template <int n> __global__ void __launch_bounds__(n * (1)) turn(int* a) {
  __shared__ int s[n];
  if (threadIdx.x < n) { s[threadIdx.x] = a[threadIdx.x]; }
  __syncthreads();  /* __syncthreads(); */
  a[threadIdx.x] = s[n - 1 - threadIdx.x];
}
__global__ void twice(int* a) { a[threadIdx.x] *= 2; __syncthreads ( ) ; a[threadIdx.x] += 1; }
__global__ void none(int*);
__global__ void nobody(int* a) { __syncthreads(); }
int main() {
  int* a; int h[64] = {}; cudaMalloc(&a, sizeof h); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice);
  turn<64><<<1, 64>>>(a); twice<<<1, 64>>>(a);
  cudaMemcpy(h, a, sizeof h, cudaMemcpyDeviceToHost); puts(h[9] == 1 ? "PASS" : "FAIL");
}
"""


def test_the_page_is_up_to_date():
    assert barriers.PAGE.read_text(encoding="utf-8") == barriers.page(RECORD)


def test_sixty_kernels_were_tried_and_what_nothing_notices_was_read():
    kernels = RECORD["kernels"]
    assert len(kernels) == barriers.KERNELS
    verdicts = {name: one["verdict"] for name, one in kernels.items()}
    assert set(verdicts.values()) <= {barriers.FOUND, barriers.WRONG, barriers.UNNOTICED}
    assert {name for name, verdict in verdicts.items() if verdict == barriers.UNNOTICED} == set(READ_BARRIERS)
    assert all(re.match(r"\w+ at [\w.]+:\d+: ", one["why"]) for one in kernels.values() if one["verdict"] == "found")


def test_barriers_are_found_in_the_bodies_of_kernels():
    found = {name: [PROGRAM.count("\n", 0, at) + 1 for at, _ in places] for name, places in barriers.kernels(PROGRAM)}
    assert found == {"turn": [7], "twice": [10], "nobody": [12]}


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_one_that_matters_is_missed_and_one_that_does_not_is_not(tmp_path, monkeypatch):
    (tmp_path / "main.cu").write_text(PROGRAM)
    command = (tmp_path, ["main.cu"], [], [])
    monkeypatch.setattr(barriers, "program_of", lambda *_: (command, tmp_path, run.SAYS))
    drawn = list(barriers.barriers("own", tmp_path, ["main.cu"], {"turn", "twice"}))
    turn, twice = (barriers.tried(one, {}) for one in drawn)
    assert (turn["verdict"], turn["line"], turn["of"]) == (barriers.FOUND, 7, 1)
    assert turn["why"].startswith("DataRace at main.cu:8: race:")
    assert twice["verdict"] == barriers.UNNOTICED
    assert (tmp_path / "main.cu").read_text() == PROGRAM

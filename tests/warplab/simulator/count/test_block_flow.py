"""How often basic blocks ran, where branches went, and how often threads went round loops."""

from __future__ import annotations

import numpy as np
import pytest

from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.ptx.parser import load

CODE = r"""
extern "C" __global__ void nested(const int *a, const int *b, int *y) {
    int t = blockIdx.x * blockDim.x + threadIdx.x, s = 1;
    #pragma unroll 1
    for (int i = 0; i < a[t]; i++) {
        #pragma unroll 1
        for (int k = 0; k < b[t]; k++) s = s * 5 + k;
    }
    y[t] = s;
}
"""


def flow(a, b, grid=1, **options):
    a, b = np.asarray(a, np.int32), np.asarray(b, np.int32)
    arguments = (a, b, np.zeros(a.size, np.int32))
    return simulate(CudaSource(CODE, "nested"), grid, a.size // grid, arguments, **options).flow


def test_trips_are_those_of_each_entry():
    a, b = np.arange(64) % 3, np.arange(64) % 5
    found = flow(a, b)
    outer, inner = sorted(found.trips)
    assert found.trips[outer] == {n: int((a == n).sum()) for n in (1, 2)}
    # The inner loop is entered once for each trip of the outer one, but for threads without trips in it.
    assert found.trips[inner] == {n: int(a[b == n].sum()) for n in (1, 2, 3, 4)}


def test_trips_of_whole_groups_and_of_several_chunks():
    found = flow(np.full(128, 2), np.full(128, 7), grid=4, chunk_lanes=32)
    outer, inner = sorted(found.trips)
    assert found.trips == {outer: {2: 128}, inner: {7: 256}}


def test_threads_flow_from_block_to_block():
    """Who comes into a block by an edge is who leaves the one before: nobody is lost."""
    found = flow(np.arange(96) % 4, np.arange(96) % 6)
    blocks = found.translation.blocks
    into = [0.0] * len(blocks)
    into[0] = 96
    for block in blocks:
        taken = found.taken_threads[block.index]
        for number in dict.fromkeys(block.successors()):
            branch = block.end in ("branch", "guard")
            part = taken if number == block.target else found.threads[block.index] - taken
            into[number] += part if branch else found.threads[block.index]
    assert into == found.threads
    assert all(n <= w for n, w in zip(found.parted, found.warps, strict=True))


def test_a_sample_is_scaled_to_the_grid():
    a, b = np.full(64 * 32, 3), np.full(64 * 32, 2)
    whole, sample = flow(a, b, grid=64), flow(a, b, grid=64, sample_blocks=16)
    assert sample.threads == pytest.approx(whole.threads)
    assert sample.taken_warps == pytest.approx(whole.taken_warps)
    for head, trips in whole.trips.items():
        assert sample.trips[head] == pytest.approx(trips)


def test_instructions_know_where_they_stand():
    program = load(CudaSource(CODE, "nested").ptx)
    instructions = program.entries["nested"].instructions
    for instruction in instructions:
        statement = " ".join(program.text[instruction.at :].split(";")[0].split())
        assert statement == instruction.text
    assert len({i.at for i in instructions}) == len(instructions)

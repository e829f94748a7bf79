"""Deadlocks are told when the state of all threads comes round again, long before the instruction limit."""

from __future__ import annotations

import numpy as np
import pytest

from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate

SOURCE = """
#include <cooperative_groups.h>
#define KERNEL extern "C" __global__ void
KERNEL all_of_the_grid(int* word, int blocks) {
    if (blockIdx.x < blocks) cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0) word[blockIdx.x] = 1;
}
KERNEL for_a_flag(int* word, int blocks) {
    if (threadIdx.x == 0 && blockIdx.x < blocks) while (*(volatile int*)word == 0);
}
KERNEL for_one_another(int* word, int blocks) {
    if (threadIdx.x == 0) {
        while (*(volatile int*)(word + 1 - blockIdx.x) == 0);
        *(volatile int*)(word + blockIdx.x) = 1;
    }
}
KERNEL never_unlocks(int* word, int blocks) {
    if (threadIdx.x == 0) {
        while (atomicCAS(word, 0, 1) != 0);
        word[1]++;
    }
}
KERNEL gives_up(int* word, int blocks) {
    int tries = 0;
    if (threadIdx.x == 0) while (*(volatile int*)word == 0 && ++tries < 3000);
    if (threadIdx.x == 0) word[1 + blockIdx.x] = tries;
}
KERNEL until_a_time(int* word, int blocks) {
    long long end = clock64() + 30000;
    if (threadIdx.x == 0) while (*(volatile int*)word == 0 && clock64() < end);
    if (threadIdx.x == 0) word[1 + blockIdx.x] = 1;
}
KERNEL a_late_flag(int* word, int blocks) {
    if (blockIdx.x == 0) {
        int sum = 0;
        for (int i = 0; i < 20000; i++) sum += i * i ^ sum >> 3;
        if (threadIdx.x == 0) { word[1] = sum; __threadfence(); *(volatile int*)word = 1; }
    } else if (threadIdx.x == 0) {
        while (*(volatile int*)word == 0);
    }
}
KERNEL in_turn(int* word, int blocks) {
    if (threadIdx.x == 0) {
        while (*(volatile int*)word != blockIdx.x);
        __threadfence();
        word[1] += blockIdx.x;
        __threadfence();
        *(volatile int*)word = blockIdx.x + 1;
    }
}
"""


def run(name, blocks, waiting, **options):
    word = np.zeros(2 + blocks, np.int32)
    simulate(CudaSource(SOURCE, name), blocks, 64, (word, np.int32(waiting)), **options)
    return word


@pytest.mark.parametrize(
    ("kernel", "waiting", "options", "cause"),
    [
        ("all_of_the_grid", 1, {"cooperative": True}, r"the grid's barrier \(grid\.sync\(\)\)"),
        ("for_a_flag", 2, {}, "memory that another thread must change"),
        ("for_one_another", 2, {}, "memory that another thread must change"),
        ("never_unlocks", 2, {}, "is a lock never released"),
    ],
)
def test_a_deadlock_is_told_at_once(kernel, waiting, options, cause):
    with pytest.raises(simulator.InstructionLimit, match=f"a deadlock: after (.*\n)*.*{cause}") as caught:
        run(kernel, 2, waiting, **options)
    assert caught.value.profile.counts.warp_instructions < 200_000


@pytest.mark.parametrize(
    ("kernel", "blocks"), [("gives_up", 2), ("until_a_time", 2), ("a_late_flag", 3), ("in_turn", 40)]
)
def test_what_ends_later_is_no_deadlock(kernel, blocks):
    word = run(kernel, blocks, 2)
    if kernel == "gives_up":
        assert word[1:3].tolist() == [3000, 3000]
    if kernel == "in_turn":
        assert word[:2].tolist() == [40, sum(range(40))]

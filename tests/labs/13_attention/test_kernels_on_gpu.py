"""Lab 13's kernels on a GPU: right at long lengths, the same each time, as fast as the lab asks beside PyTorch's.

An H200 has run those of gradients (2026-11-26)."""

import numpy as np
import pytest

from kernels.attention import backward_pass
from kernels.attention.backward_pass import backward
from kernels.attention.forward_pass import STEPS, forward
from kernels.attention.measurements import backward_table, decode_table, forward_table
from tests.support.machines import needs_idle_gpu
from tests.support.random_inputs import generator
from warpcourse.bench import hopper
from warplab import cp
from warplab.hardware import backend

from .bounds import operands
from .held import check_backward, check_decode, check_forward

pytestmark = pytest.mark.gpu
# batch, heads, query heads for a head of keys, queries, keys, size, causal
LONG = ((1, 2, 2, 1000, 3001, 128, True), (2, 4, 2, 1025, 1025, 64, True), (1, 2, 1, 300, 2048, 256, False))
# What issue 31 asks, of the fastest backend in the same run, at lengths from 1k on.
LEAST = {False: 0.90, True: 0.85}
LEAST_BACKWARD, LEAST_OF_A_COPY, LEAST_OF_MMA = 0.75, 0.90, 0.90


@pytest.fixture(autouse=True)
def _on_a_gpu():
    assert backend.name() == "gpu", f"these tests measure a GPU; {backend.reason()}"


def kinds(name):
    """Types that a step takes; skips a step that the GPU lacks the instructions for."""
    if name == "wgmma" and not hopper.available():
        pytest.skip("wgmma is for compute capability 9.0")
    return ("float32",) if STEPS[name].dtypes[0] == np.float32 else ("float16", "bfloat16")


@pytest.mark.parametrize("name", list(STEPS))
@pytest.mark.parametrize("case", LONG, ids=str)
def test_every_step_at_long_lengths(name, case):
    for kind in kinds(name):
        check_forward(name, case, kind)


@pytest.mark.parametrize("name", backward_pass.STEPS)
@pytest.mark.parametrize("case", LONG, ids=str)
def test_gradients_at_long_lengths(name, case):
    for kind in kinds(name):
        check_backward(name, case, kind)


@pytest.mark.parametrize("splits", [None, 5])
def test_decoding_of_long_caches(splits):
    check_decode((3, 8, 4, 5000, 128), "float16", splits, page=64, lengths=(5000, 17, 4096))


@pytest.mark.parametrize("name", list(STEPS))
def test_results_are_the_same_each_time(name):
    q, k, v = (cp.asarray(x.given) for x in operands(generator(), 2, 4, 2, 777, 1111, 64, kinds(name)[0]))
    first = forward(q, k, v, True, step=name)
    for _ in range(5):
        for x, y in zip(first, forward(q, k, v, True, step=name), strict=True):
            assert bool((x == y).all())
    if q.dtype == np.float16:
        gradients, again = (backward(q, k, v, *first, q, True, step=name) for _ in range(2))
        for x, y in zip(gradients[name == "wgmma" :], again[name == "wgmma" :], strict=True):  # its dq is not
            assert bool((x == y).all())


@needs_idle_gpu
def test_forward_beside_pytorchs_backends():
    best = "wgmma" if hopper.available() else "mma"
    for row in forward_table(lengths=(1024, 4096, 16384))["rows"]:
        assert row["correct"]
        assert row["ratio_to_best"][best] >= LEAST[row["causal"]], row
        assert row["seconds"]["mma"] <= row["seconds"]["FlashAttention 2"] / LEAST_OF_MMA, row
        # Of out and lse alone, so of tokens; unfused at least a weight for each pair in each of 16 heads, too.
        assert set(row["bytes"].values()) == {16 * 16384 * (2 * 128 + 4)}
        assert row["peers_bytes"]["unfused"] > 16 * 16384 * row["length"] * 2


@needs_idle_gpu
def test_backward_beside_pytorchs_backends():
    best = "wgmma" if hopper.available() else "mma"
    for row in backward_table(lengths=(1024, 4096, 16384))["rows"]:
        assert row["correct"]
        assert row["ratio_to_best"][best] >= LEAST_BACKWARD, row


@needs_idle_gpu
def test_decoding_beside_a_copy():
    for row in decode_table()["rows"]:
        assert row["correct"]
        if row["batch"] >= 8:
            assert row["gbps"]["decode"] >= LEAST_OF_A_COPY * row["gbps"]["copy"], row
        else:
            assert row["gbps"]["decode"] > row["gbps"]["cuDNN"], row

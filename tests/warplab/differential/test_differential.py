"""Random kernels: the simulator gives what an H100 gave (`differential`), and finds nothing to report in them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.support.loop_kernels import at_once
from tests.warplab.differential import compare, execution
from tests.warplab.differential.generator import BATCH, FLAVOURS, kernel, seeds_of, source_of
from tests.warplab.differential.record import SAMPLE
from warplab.simulator.translate import machine_compiler

BATCHES = range(SAMPLE // BATCH)


def test_enough_is_recorded_and_the_generator_still_makes_it():
    recorded = compare.recorded()
    assert len(recorded.digests) == len(recorded.ptx) * BATCH == recorded.about["kernels"] >= 2000
    assert "H100" in recorded.about["device"]
    made = [execution.digest(source_of(batch)) for batch in range(len(recorded.ptx))]
    assert made == recorded.sources, "the generator has changed: record its kernels again"
    sample = [seed for seed in recorded.words if seed < SAMPLE]
    assert len(sample) == SAMPLE == 200
    assert {kernel(seed).flavour for seed in sample} == set(FLAVOURS)


@pytest.mark.parametrize("batch", BATCHES)
def test_numpy_agrees_with_the_gpu(batch):
    problems = [compare.difference(seed, machine_code=False) for seed in seeds_of(batch)]
    assert len(problems) == BATCH == 50
    assert not any(problems), "\n".join(filter(None, problems))


@pytest.mark.skipif(not machine_compiler.available(), reason="LLVM does not know this processor")
@pytest.mark.parametrize("batch", [0, *(pytest.param(k, marks=pytest.mark.thorough) for k in BATCHES[1:])])
def test_machine_code_agrees_with_the_gpu(batch, monkeypatch):
    runs = at_once(monkeypatch)
    problems = [compare.difference(seed) for seed in seeds_of(batch)]
    assert not any(problems), "\n".join(filter(None, problems))
    assert sum(runs) > 0.9 * len(runs) > BATCH, "runs were left to NumPy"


def test_one_wrong_bit_is_found():
    exact, close = kernel(0), next(kernel(seed) for seed in range(SAMPLE) if kernel(seed).approximate)
    for this, bit in ((exact, 0), (close, 8)):
        words = compare.recorded().words[this.seed]
        digest = execution.result_digest(words)
        assert compare.mismatch(this, words, digest, words) == ""
        wrong = words.copy()
        wrong[3] ^= 1 << bit
        assert compare.mismatch(this, wrong, digest, words)
    assert "digest" in compare.mismatch(exact, words + np.uint32(1), compare.recorded().digests[0], None)


def test_documented_errors_are_the_measure():
    """Two results within the error of a function lie at most twice the error apart."""
    this = next(kernel(seed) for seed in range(SAMPLE) if kernel(seed).approximate)
    function = dataclasses.replace(this.approximate[0], kind="f32", ulps=2, absolute=0)
    this = dataclasses.replace(this, words=1, block=(1,), grid=1, approximate=(function,))
    one = np.array([1.5], np.float32).view(np.uint32)
    for apart, fits in ((0, True), (4, True), (5, False)):
        assert (compare.approximate_mismatch(this, one + np.uint32(apart), one) == "") is fits
    nan = np.array([np.nan], np.float32).view(np.uint32)
    assert compare.approximate_mismatch(this, nan, nan) == ""
    assert compare.approximate_mismatch(this, nan, one)


def test_products_are_fused_into_their_only_sum():
    ptx = """.visible .entry k(
)
{
	mul.f32 	%f3, %f1, %f2;
	sub.f32 	%f4, %f9, %f3;
	mul.f32 	%f5, %f1, %f2;
	add.f32 	%f6, %f5, %f9;
	add.f32 	%f7, %f5, %f1;
	ret;
}
"""
    fused = compare.with_fused_products(ptx, "k")
    assert "neg.f32 %f3, %f1; fma.rn.f32 %f4, %f3, %f2, %f9;" in fused
    assert "add.f32 \t%f6, %f5, %f9;" in fused  # used twice


@pytest.mark.gpu
def test_this_gpu_agrees_with_the_recording():
    recorded = compare.recorded()
    module = execution.gpu_module(compare.ptx_of(0))
    problems = []
    for seed in seeds_of(0):
        seen = execution.run_on_gpu(module, kernel(seed))
        problems.append(compare.mismatch(kernel(seed), seen, recorded.digests[seed], recorded.words[seed]))
    assert len(problems) == 50
    assert not any(problems), "\n".join(filter(None, problems))

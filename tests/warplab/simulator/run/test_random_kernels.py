"""Random kernels: machine code gives the arrays, counters, traces and errors of NumPy, bit by bit.

WARPLAB_SEED sets the first seed, to explore further kernels.
"""

import os

import numpy as np
import pytest

from tests.support.loop_kernels import at_once, seen_of
from tests.support.race_twins import compare_races
from tests.support.random_kernels import RandomKernel, random_kernel
from warplab import simulator
from warplab.launch.kernel_source import CudaSource
from warplab.launch.simulate import simulate
from warplab.simulator.run import machine_runs
from warplab.simulator.translate import machine_compiler

pytestmark = pytest.mark.skipif(not machine_compiler.available(), reason="LLVM does not know this processor")

FIRST, OF_A_TEST, TESTS = int(os.environ.get("WARPLAB_SEED", "0")), 10, 50


def outcome(kernel: RandomKernel, machine_code: bool) -> tuple:
    """Arrays after a launch, what its profile holds, and its error."""
    arrays, error = [array.copy() for array in kernel.arrays], None
    arguments = (*arrays, len(kernel.arrays[0]))
    source, device = CudaSource(kernel.source, "random_kernel"), simulator.Device(64 << 20)
    try:
        profile = simulate(
            source, kernel.grid, kernel.block, arguments, device=device, machine_code=machine_code, **kernel.options
        )
    except simulator.SimulatorError as caught:
        error, profile = str(caught), caught.profile
    for array in arrays:
        if array.dtype == np.float64:  # of two NaN, NumPy keeps one or the other, by where in an array they stand
            array[np.isnan(array)] = np.nan
    return [array.tobytes() for array in arrays], None if profile is None else seen_of(profile), error


@pytest.fixture
def eager(monkeypatch):
    compare_races(monkeypatch)
    return at_once(monkeypatch)


@pytest.mark.parametrize(
    "batch",
    [pytest.param(k, marks=[pytest.mark.thorough] if k else [], id=f"from-{OF_A_TEST * k}") for k in range(TESTS)],
)
def test_random_kernels_do_what_numpy_does(batch, eager, monkeypatch):
    if batch % 2:  # no room for records of addresses, and addresses that are asked for late
        monkeypatch.setattr(machine_runs, "_POOL", 2)
        monkeypatch.setattr(machine_runs, "_SHARED", 1)
    print(f"seeds from WARPLAB_SEED={FIRST}")
    unlike = []
    for seed in range(FIRST + OF_A_TEST * batch, FIRST + OF_A_TEST * (batch + 1)):
        kernel = random_kernel(seed)
        want, got = outcome(kernel, False), outcome(kernel, True)
        if want != got:
            parts = [what for what, a, b in zip(("arrays", "profile", "error"), want, got, strict=True) if a != b]
            unlike.append(f"seed {seed}: {parts} {want[2]!r} {got[2]!r}\n{kernel.source}{kernel.options}")
    assert not unlike, "\n\n".join(unlike)
    assert sum(eager) > len(eager) // 2, "most runs were left to NumPy"

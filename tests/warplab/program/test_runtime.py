"""Calls of the CUDA runtime, served without a program: what each does to the simulated device."""

from types import SimpleNamespace

import pytest

from warplab import simulator
from warplab.hardware.cards import card
from warplab.program.runtime import InvalidCall, Runtime


def test_a_kernel_gets_the_shared_memory_that_the_program_asks_for():
    kernel = SimpleNamespace(dynamic_bytes=None)
    runtime = Runtime(SimpleNamespace(kernels={64: kernel}, instances={}), simulator.Device(1 << 20), card("H100"))
    runtime.cudaFuncSetAttribute(64, 8, 80_000)
    assert kernel.dynamic_bytes == 80_000


@pytest.mark.parametrize(("kind", "side"), [(1, "source"), (1, "target"), (2, "source"), (2, "target"), (4, "source")])
def test_a_copy_with_a_null_pointer_is_an_error_of_the_call_on_either_side(kind, side):
    runtime = Runtime(SimpleNamespace(kernels={}, instances={}), simulator.Device(1 << 20), card("H100"))
    there = runtime.cudaMallocManaged(64, 1).values[0]
    target, source = (0, there) if side == "target" else (there, 0)
    with pytest.raises(InvalidCall, match=f"with a null {side}"):
        runtime.cudaMemcpy(target, 64, source, 64, 64, 1, kind)
    assert runtime.cudaMemcpy(target, 0, source, 0, 0, 1, kind).error == 0  # of no bytes

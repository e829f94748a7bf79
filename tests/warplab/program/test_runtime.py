"""Calls of the CUDA runtime, served without a program: what each does to the simulated device."""

from types import SimpleNamespace

from warplab import simulator
from warplab.hardware.cards import card
from warplab.program.runtime import Runtime


def test_a_kernel_gets_the_shared_memory_that_the_program_asks_for():
    kernel = SimpleNamespace(dynamic_bytes=None)
    runtime = Runtime(SimpleNamespace(kernels={64: kernel}, instances={}), simulator.Device(1 << 20), card("H100"))
    runtime.cudaFuncSetAttribute(64, 8, 80_000)
    assert kernel.dynamic_bytes == 80_000

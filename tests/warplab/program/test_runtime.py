"""Calls of the CUDA runtime, served without a program: what each does to the simulated device."""

from types import SimpleNamespace

import pytest

from warplab import simulator
from warplab.hardware.cards import card
from warplab.program import runtime
from warplab.program.runtime import InvalidCall, Runtime, UnsupportedCall
from warplab.running import collected


def test_a_kernel_gets_the_shared_memory_that_the_program_asks_for():
    kernel = SimpleNamespace(dynamic_bytes=None)
    served = Runtime(SimpleNamespace(kernels={64: kernel}, instances={}), simulator.Device(1 << 20), card("H100"))
    served.cudaFuncSetAttribute(64, 8, 80_000)
    assert kernel.dynamic_bytes == 80_000


@pytest.mark.parametrize(("kind", "side"), [(1, "source"), (1, "target"), (2, "source"), (2, "target"), (4, "source")])
def test_a_copy_with_a_null_pointer_is_an_error_of_the_call_on_either_side(kind, side):
    served = Runtime(SimpleNamespace(kernels={}, instances={}), simulator.Device(1 << 20), card("H100"))
    there = served.cudaMallocManaged(64, 1).values[0]
    target, source = (0, there) if side == "target" else (there, 0)
    with pytest.raises(InvalidCall, match=f"with a null {side}"):
        served.cudaMemcpy(target, 64, source, 64, 64, 1, kind)
    assert served.cudaMemcpy(target, 0, source, 0, 0, 1, kind).error == 0  # of no bytes
    with pytest.raises(InvalidCall, match="of 18,446,744,073,709,551,615 x 1 bytes") as told:
        served.cudaMemcpy(there, -1, there, -1, -1, 1, kind)
    assert told.value.reason == "Is a size negative?"


def test_memory_is_freed_by_the_call_of_its_kind_and_its_kind_is_told():
    served = Runtime(SimpleNamespace(kernels={}, instances={}), simulator.Device(1 << 20), card("H100"))
    plain, pinned = served.cudaMalloc(64, 0).values[0], served.cudaMallocHost(64, 1).values[0]
    managed, variable = served.cudaMallocManaged(64, 1).values[0], served.memory.allocate(64)
    kinds = [served.cudaPointerGetAttributes(one).values[0] for one in (plain, pinned, managed, variable, 64)]
    assert kinds == [2, 1, 3, 2, 0]
    for free, one, said in (
        (served.cudaFreeHost, plain, "cudaFreeHost of device memory"),
        (served.cudaFreeHost, managed, "cudaFreeHost of device memory"),
        (served.cudaFree, pinned, "cudaFree of pinned host memory"),
        (served.cudaFree, variable, "cudaFree of a variable of the device"),
    ):
        with pytest.raises(InvalidCall, match=said):
            free(one)
    assert [served.cudaFree(one).error for one in (plain, managed, 0)] == [0, 0, 0]
    assert [served.cudaFreeHost(one).error for one in (pinned, 0)] == [0, 0]
    with pytest.raises(InvalidCall, match="has been freed"):
        served.cudaFreeHost(pinned)


def test_a_failed_assert_is_told_from_other_failures_as_on_a_gpu():
    failed = simulator.AssertFailed("assertion failed", expression="x")
    texts = Runtime(SimpleNamespace(kernels={}, instances={}), simulator.Device(1 << 20), card("H100"))
    told = [texts.cudaGetErrorString(runtime._code(one)).text for one in (failed, simulator.SimulatorError("trap"))]
    assert told == [b"device-side assert triggered", b"unspecified launch failure"]


def test_a_call_that_is_not_there_is_refused_and_no_defect():
    runtime = Runtime(SimpleNamespace(kernels={}, instances={}), simulator.Device(1 << 20), card("H100"))
    with pytest.raises(UnsupportedCall) as caught:
        runtime.cudaHostRegister(4096, 64)
    assert caught.value.code == 801  # cudaErrorNotSupported
    assert collected._defect(caught.value)["refused"]


def test_after_a_kernel_has_failed_every_call_returns_its_error_and_does_nothing():
    served = Runtime(SimpleNamespace(kernels={}, instances={}), simulator.Device(1 << 20), card("H100"))
    there = served.cudaMalloc(64, 0).values[0]
    served.sticky = 700  # cudaErrorIllegalAddress
    free_bytes = served.cudaMemGetInfo().values[0]
    for name, numbers in (
        ("cudaFree", (there,)),
        ("cudaFreeHost", (0,)),
        ("cudaMalloc", (64, 0)),
        ("cudaMemset", (there, 64, 1, 64, 1)),
        ("cudaMemcpy", (there, 64, 64, 64, 64, 1, 1)),
        ("cudaEventDestroy", ()),
        ("cudaDeviceReset", ()),
    ):
        assert served._answer(name, numbers, b"").error == 700, name
    assert served.cudaMemGetInfo().values[0] == free_bytes
    assert served._answer("cudaGetErrorString", (700,), b"").text == b"an illegal memory access was encountered"
    assert served._answer("cudaGetLastError", (700,), b"") == runtime.Reply(0, (700,))

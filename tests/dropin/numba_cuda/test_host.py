"""The host's side of numba.cuda on the simulator: device arrays, streams, events, devices, what is told apart."""

import asyncio

import numpy as np
import pytest
from numba import cuda as numba_cuda

from warplab import simulator
from warplab.dropin import cupy as cp
from warplab.dropin import numba_cuda as cuda

MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)


@cuda.jit
def add_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


# -- copies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", [MATRIX, np.asfortranarray(MATRIX), np.float64(3), [[1, 2], [3, 4]], (1.5, 2.5), 7])
def test_to_device_takes_what_numpy_makes_an_array_of(host):
    device = cuda.to_device(host)
    np.testing.assert_array_equal(device.copy_to_host(), np.asarray(host))
    assert device.dtype == np.asarray(host).dtype
    assert device.strides == np.asarray(host).strides


def test_to_device_without_copy_into_another_array_and_twice():
    device = cuda.to_device(MATRIX)
    assert cuda.to_device(device) is device
    assert cuda.to_device(MATRIX * 2, to=device, stream=cuda.stream()) is device
    np.testing.assert_array_equal(device.copy_to_host(), MATRIX * 2)
    assert cuda.to_device(MATRIX, copy=False, to=device) is device
    assert device[1, 1] == 10
    blank = cuda.to_device(np.ones(5, np.int32), copy=False)
    assert (blank.shape, blank.dtype) == ((5,), np.int32)
    with pytest.raises(simulator.UninitializedRead):
        add_one[1, 32](blank)


def test_a_repeated_array_takes_the_memory_of_what_repeats():
    memory = simulator.default_device().memory
    before = memory.used_bytes
    device = cuda.to_device(np.broadcast_to(np.arange(3.0), (1000, 3)))
    assert memory.used_bytes - before == 24
    assert (device.shape, device.strides) == ((1000, 3), (0, 8))
    np.testing.assert_array_equal(device.copy_to_host(), np.broadcast_to(np.arange(3.0), (1000, 3)))


def test_copies_between_orders_of_axes():
    device = cuda.to_device(np.zeros((3, 4), np.float32, order="F"))
    device.copy_to_device(MATRIX)
    np.testing.assert_array_equal(device.copy_to_host(), MATRIX)
    device.copy_to_device(np.tile(MATRIX, 2)[:, ::2] * 0 + 3)  # the host brings it into one piece
    assert (device.copy_to_host() == 3).all()
    with pytest.raises(ValueError, match="incompatible strides"):
        device.copy_to_host(np.zeros((3, 4), np.float32))
    with pytest.raises(ValueError, match="incompatible strides"):
        device.copy_to_device(cuda.to_device(MATRIX))
    device.copy_to_device(cuda.to_device(np.asfortranarray(MATRIX)))
    np.testing.assert_array_equal(device.copy_to_host(), MATRIX)


def test_copies_that_numba_cannot_make():
    device = cuda.to_device(np.arange(10))
    with pytest.raises(ValueError, match="non-contiguous"):
        device[::2].copy_to_device(np.arange(5))
    with pytest.raises(NotImplementedError, match="negative strides"):
        device[::-1].copy_to_host()
    with pytest.raises(ValueError, match="non-contiguous"):
        device[:5] = np.arange(10)[::2]
    with pytest.raises(ValueError, match="2-D array to 1-D"):
        device[:] = np.ones((1, 10))
    with pytest.raises(ValueError, match="could not broadcast"):
        device[:] = np.arange(3)


@pytest.mark.parametrize("key", [np.s_[:], 1, np.s_[1:3], np.s_[::2, 1:], np.s_[..., 2], np.s_[2, 3], np.s_[-1, ::-1]])
@pytest.mark.parametrize("value", [5, np.float64(2.5), "host", "device", "strided device"])
def test_assignment_to_parts(key, value):
    host = MATRIX.copy()
    device = cuda.to_device(host)
    if isinstance(value, str):
        new = np.ones_like(host[key]) * 9
        given = {"host": new, "device": cuda.to_device(new)}.get(value)
        if given is None:
            given = cuda.to_device(np.repeat(np.atleast_1d(new), 2, axis=0))[::2] if new.ndim else cuda.to_device(new)
    else:
        new = given = value
    device[key] = given
    host[key] = new
    np.testing.assert_array_equal(device.copy_to_host(), host)


def test_the_same_with_streams():
    device = cuda.to_device(np.arange(5))
    device.setitem(2, 9, cuda.stream())
    assert device.getitem(2, stream=cuda.stream()) == 9
    assert device.bind(cuda.stream()).copy_to_host(stream=cuda.stream()).tolist() == [0, 1, 9, 3, 4]


def test_records():
    kind = np.dtype([("a", np.int32), ("inner", [("b", np.float32), ("c", np.int8, (2,))])])
    device = cuda.to_device(np.zeros(3, kind))
    record = device[1]
    assert isinstance(record, cuda.devicearray.DeviceRecord)
    record["a"] = 7
    record["inner"]["b"] = 2.5
    record["inner"]["c"][1] = 3
    host = device.copy_to_host()
    assert host["a"].tolist() == [0, 7, 0]
    assert host["inner"]["b"].tolist() == [0, 2.5, 0]
    assert host["inner"]["c"].tolist() == [[0, 0], [0, 3], [0, 0]]
    single = cuda.to_device(host[1])
    assert isinstance(single, cuda.devicearray.DeviceRecord)
    assert (single["a"], single["inner"]["b"]) == (7, 2.5)
    assert single.copy_to_host().tobytes() == host[1].tobytes()


# -- arrays like others --------------------------------------------------------------------------------------------


def test_strides():
    for make in (cuda.device_array, cuda.pinned_array, cuda.mapped_array, cuda.managed_array):
        array = make((3, 4), np.int16, strides=(2, 6))
        assert (array.shape, array.strides) == ((3, 4), (2, 6))
        flipped = make(4, np.int32, strides=-4)
        assert flipped.strides == (-4,)
        flipped[:] = np.arange(4, dtype=np.int32)
        add_one[1, 32](flipped)
        assert [int(flipped[i]) for i in range(4)] == [1, 2, 3, 4]
        with pytest.raises(ValueError, match=r"strides"):
            make((3, 4), np.int16, strides=(2,))


def test_arrays_like_others_keep_the_order_of_their_axes():
    cube = np.zeros((2, 3, 4), np.int16)
    for like in (cube, cube.T, cube.transpose(0, 2, 1), cube[:, ::2], np.broadcast_to(cube[0], (5, 3, 4))):
        expected = np.empty_like(like)
        makers = (cuda.device_array_like, cuda.pinned_array_like, cuda.mapped_array_like)
        for array in (make(like) for make in makers):
            assert (array.shape, array.strides, array.dtype) == (expected.shape, expected.strides, np.int16)
        assert cuda.device_array_like(cuda.to_device(np.ascontiguousarray(like))).shape == like.shape


def test_host_arrays_are_not_mapped_afterwards():
    with pytest.raises(NotImplementedError, match=r"cuda\.mapped_array"):
        cuda.mapped(np.ones(3))


def test_a_mapped_array_given_to_the_device_is_itself():
    mapped = cuda.mapped_array(4, np.int32)
    assert cuda.to_device(mapped) is mapped
    assert cuda.to_device(mapped + 1) is not mapped


# -- other libraries -------------------------------------------------------------------------------------------------


class Elsewhere:
    """An object of another library that says where its elements are."""

    def __init__(self, array):
        self.array, self.__cuda_array_interface__ = array, array.__cuda_array_interface__


def test_arrays_of_other_libraries_share_their_memory():
    array = cp.arange(12, dtype=np.int32).reshape(3, 4)
    for owner in (array[1], Elsewhere(array[1])):
        assert cuda.is_cuda_array(owner)
        add_one[1, 32](cuda.as_cuda_array(owner))
    assert array[1].get().tolist() == [6, 7, 8, 9]
    view = cuda.from_cuda_array_interface(array.T.__cuda_array_interface__, owner=array)
    assert view.strides == (4, 16)
    view[0] = 0
    assert array[:, 0].get().tolist() == [0, 0, 0]
    assert not cuda.is_cuda_array(np.ones(3))
    with pytest.raises(TypeError, match="cuda array interface"):
        cuda.as_cuda_array(np.ones(3))


def test_an_address_that_is_not_of_the_device():
    description = {**cuda.to_device(np.ones(4)).__cuda_array_interface__, "data": (1 << 20, False)}
    with pytest.raises(ValueError, match="not in the memory of the simulated device"):
        cuda.from_cuda_array_interface(description)
    with pytest.raises(NotImplementedError, match="Masked"):
        cuda.from_cuda_array_interface({**description, "mask": 1})


def test_what_programs_ask_numba_s_modules_for():
    device = cuda.to_device(np.ones(3))
    assert isinstance(device, cuda.devicearray.DeviceNDArray)
    assert isinstance(device, cuda.cudadrv.devicearray.DeviceNDArray)
    assert cuda.devicearray.is_cuda_ndarray(device)
    assert cuda.cudadrv.error.CudaSupportError is numba_cuda.CudaSupportError
    with pytest.raises(AttributeError, match=r"cuda\.cudadrv\.driver of Numba is not on the simulator"):
        _ = cuda.cudadrv.driver


# -- streams, events, devices ------------------------------------------------------------------------------------------


def test_streams():
    streams = [cuda.stream(), cuda.default_stream(), cuda.legacy_default_stream(), cuda.per_thread_default_stream()]
    streams.append(cuda.external_stream(cp.cuda.Stream().ptr))
    x, called = np.zeros(3), []
    for stream in streams:
        with stream.auto_synchronize() as same:
            assert same is stream
            add_one[1, 32, stream](x)
        stream.add_callback(lambda *args: called.append(args), "data")
        stream.synchronize()
    assert (x == len(streams)).all()
    assert called == [(stream, 0, "data") for stream in streams]
    assert len({repr(stream) for stream in streams}) == 5


def test_a_stream_can_be_awaited():
    async def run():
        stream = cuda.stream()
        add_one[1, 32, stream](x)
        assert await stream.async_done() is stream

    x = np.zeros(3)
    asyncio.run(run())
    assert (x == 1).all()


def test_devices_and_contexts(capsys):
    assert len(cuda.gpus) == 1
    assert [gpu.id for gpu in cuda.gpus] == [cuda.gpus.current.id] == [0]
    with cuda.gpus[0]:
        add_one[1, 32](np.zeros(3))
    context = cuda.current_context()
    assert context.device is cuda.get_current_device()
    assert isinstance(context.get_memory_info(), cuda.MemoryInfo)
    context.synchronize()
    with pytest.raises(AttributeError, match="context has no memalloc"):
        context.memalloc(10)
    device = cuda.get_current_device()
    assert (device.MAX_THREADS_PER_MULTIPROCESSOR, device.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) == (2048, 228 << 10)
    assert (device.COMPUTE_CAPABILITY_MAJOR, device.MAX_REGISTERS_PER_BLOCK) == (9, 65536)
    supported = cuda.is_float16_supported, cuda.is_bfloat16_supported, cuda.is_fp8_supported, cuda.is_supported_version
    assert all(ask() is True for ask in supported)
    assert cuda.cuda_error() is None
    assert cuda.runtime.get_version()[0] == 13
    assert cuda.detect() is True
    assert "'PTX simulator'" in capsys.readouterr().out


def test_what_only_a_gpu_needs_changes_nothing():
    @cuda.require_context
    def launch(x):
        with cuda.defer_cleanup(), cuda.profiling():
            add_one[1, 32](x)
        return x

    cuda.profile_start()
    assert launch(np.zeros(2)).tolist() == [1, 1]
    cuda.profile_stop()
    cuda.synchronize()
    cuda.close()


def test_memory_is_not_shared_between_processes():
    with pytest.raises(NotImplementedError, match="one process"):
        cuda.to_device(np.ones(3)).get_ipc_handle()
    with pytest.raises(NotImplementedError, match="one process"):
        cuda.open_ipc_array(b"", 3, np.float32)

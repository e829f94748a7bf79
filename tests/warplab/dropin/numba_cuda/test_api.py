"""Functions that make arrays, and arrays of other libraries."""

import numpy as np
import pytest

from warplab import simulator
from warplab.dropin import cupy as cp
from warplab.dropin import numba_cuda as cuda


@cuda.jit
def add_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


def test_arrays_like_others():
    fortran = np.zeros((3, 4), np.float32, order="F")
    assert cuda.device_array_like(fortran).strides == (4, 12)
    assert cuda.to_device(fortran).is_f_contiguous()
    assert cuda.device_array((2, 3)).dtype == np.float64
    with pytest.raises(TypeError, match="integer"):
        cuda.device_array(2.5)
    with pytest.raises(ValueError, match="ascontiguousarray"):
        cuda.to_device(np.zeros(10)[::2])
    with pytest.raises(TypeError, match="Python objects"):
        cuda.to_device(np.array([None]))


def test_pinned_and_mapped_arrays():
    x = cuda.pinned_array(10, np.float32)
    assert isinstance(x, np.ndarray)
    with cuda.pinned(x):
        pass
    for make in (cuda.mapped_array, cuda.managed_array):
        shared = make((2, 5), np.float32)
        shared[:] = 1
        add_one[1, 32](shared[1])
        np.testing.assert_array_equal(shared, [[1] * 5, [2] * 5])
        copied = shared + 1  # an array of the host
        add_one[1, 32](copied[0])
        np.testing.assert_array_equal(copied, [[3] * 5, [3] * 5])


MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)


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

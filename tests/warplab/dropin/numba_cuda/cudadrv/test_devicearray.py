"""Device arrays and records: copies, indices, shapes, memory."""

import numpy as np
import pytest

from warplab import simulator
from warplab.dropin import numba_cuda as cuda


@cuda.jit
def add_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


def test_copies_to_and_from_the_host():
    host = np.arange(12, dtype=np.float32).reshape(3, 4)
    x = cuda.to_device(host)
    out = np.zeros((3, 4), np.float32)
    assert x.copy_to_host(out) is out
    np.testing.assert_array_equal(out, host)
    x.copy_to_device(host * 2)
    np.testing.assert_array_equal(x.copy_to_host(), host * 2)
    assert cuda.to_device(host, to=x) is x
    np.testing.assert_array_equal(x.copy_to_host(), host)
    np.testing.assert_array_equal(np.asarray(x), host)  # Numba's arrays do this, CuPy's do not


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (np.zeros(11, np.float32), ValueError),
        (np.zeros(12, np.float64), TypeError),
        (np.zeros(24, np.float32)[::2], ValueError),
    ],
)
def test_copies_that_do_not_fit(wrong, error):
    x = cuda.to_device(np.zeros(12, np.float32))
    with pytest.raises(error, match="incompatible"):
        x.copy_to_host(wrong)


def test_indices_and_slices_share_memory():
    x = cuda.to_device(np.arange(20, dtype=np.int32).reshape(4, 5))
    assert x[1, 2] == 7
    np.testing.assert_array_equal(x[1:3, ::2].copy_to_host(), [[5, 7, 9], [10, 12, 14]])
    np.testing.assert_array_equal(x[-1].copy_to_host(), [15, 16, 17, 18, 19])
    add_one[1, 32](x[2])
    assert x[2, 0] == 11
    x[0] = 7
    x[1, 1:3] = np.array([1, 2], np.int32)
    x[3, 4] = 100
    np.testing.assert_array_equal(x.copy_to_host()[[0, 1, 3]], [[7] * 5, [5, 1, 2, 8, 9], [15, 16, 17, 18, 100]])
    with pytest.raises(NotImplementedError, match="copy it to the host"):
        x[np.array([0, 1])]


def test_what_is_written_through_a_slice_counts_as_written():
    x = cuda.device_array(10, np.float32)
    x[::2] = 1
    add_one[1, 32](x[::2])
    with pytest.raises(simulator.UninitializedRead):
        add_one[1, 32](x)


def test_shapes():
    x = cuda.to_device(np.arange(6, dtype=np.float32))
    assert x.reshape(2, 3).shape == x.reshape((2, -1)).shape == (2, 3)
    assert x.reshape(2, 3).ravel().shape == (6,)
    np.testing.assert_array_equal(x.reshape(2, 3).T.copy_to_host(), np.arange(6).reshape(2, 3).T)
    assert x.view(np.int32).dtype == np.int32
    assert [part.shape for part in x.split(4)] == [(4,), (2,)]
    with pytest.raises(NotImplementedError, match="requires copying"):
        x.reshape(2, 3)[:, :2].ravel()
    assert (x.ndim, x.size, x.nbytes, x.strides, len(x)) == (1, 6, 24, (4,), 6)
    assert "DeviceNDArray shape=(6,) dtype=float32" in repr(x)


def test_memory_is_freed_with_the_last_array():
    memory = simulator.default_device().memory
    before = memory.used_bytes
    x = cuda.device_array(1000, np.float32)
    part = x[:10]
    assert memory.used_bytes == before + 4000
    assert cuda.current_context().get_memory_info().free == memory.memory_bytes - memory.used_bytes
    del x
    assert memory.used_bytes == before + 4000
    del part
    assert memory.used_bytes == before


MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)


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

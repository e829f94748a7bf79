"""What a kernel of numba.cuda can be given, against NumPy: arrays, records, numbers."""

import enum
from collections import namedtuple

import numba
import numpy as np
import pytest

from warplab.dropin import numba_cuda as cuda
from warplab.launch.errors import ArgumentError

LANES = np.arange(32)
RECORD = np.dtype([("key", np.int32), ("value", np.float64), ("part", np.float32, (3,))], align=True)


Pair = namedtuple("Pair", "first second")


class Colour(enum.IntEnum):
    RED = 3
    BLUE = 4


def test_records():
    @cuda.jit
    def fill(records, one, out):
        i = cuda.grid(1)
        records[i].key = 2 * i
        records[i]["value"] = i / 4
        records[i].part[1] = one.part[2]
        out[i] = records[i].key + records[i]["value"] + one.value

    records, out = np.zeros(32, RECORD), np.zeros(32)
    one = np.zeros((), RECORD)
    one["value"], one["part"] = 100, [1, 2, 3]
    device = cuda.to_device(records)
    for given in (records, device):
        out[:] = 0
        fill[1, 32](given, one[()], out)
        np.testing.assert_array_equal(out, 2 * LANES + LANES / 4 + 100)
    result = device.copy_to_host()
    np.testing.assert_array_equal(result, records)
    np.testing.assert_array_equal(result["part"], [[0, 3, 0]] * 32)
    assert device[5]["key"] == 10
    np.testing.assert_array_equal(device[5]["part"].copy_to_host(), [0, 3, 0])
    more = cuda.to_device(records)
    more[5]["value"] = 9
    fill[1, 32](device, more[5], out)
    np.testing.assert_array_equal(out, 2 * LANES + LANES / 4 + 9)


def test_shared_records_and_complex_numbers():
    kind = numba.from_dtype(np.dtype([("a", np.int32), ("b", np.float32)]))

    @cuda.jit
    def reverse(out):
        records = cuda.shared.array(32, kind)
        numbers = cuda.shared.array(32, numba.complex64)
        i = cuda.threadIdx.x
        records[i].a, records[i].b = i, i / 2
        numbers[i] = complex(i, -i)
        cuda.syncthreads()
        out[i] = records[31 - i].a + records[31 - i].b + numbers[31 - i] * 2j

    out = np.zeros(32, np.complex128)
    reverse[1, 32](out)
    np.testing.assert_array_equal(out, LANES[::-1] * (1.5 + (1 - 1j) * 2j))


def test_numbers_tuples_enums_and_dates():
    @cuda.jit
    def use(pair, flag, factor, colour, date, out, dates):
        i = cuda.grid(1)
        if flag:
            out[i] = pair.first[i] * factor + pair.second[1] + (4 if colour == Colour.BLUE else 0)
            dates[i] = date

    out, dates = np.zeros(4, np.complex64), np.zeros(4, "M8[D]")
    first, date = cuda.to_device(np.arange(4.0)), np.datetime64("2017-10-13")
    use[1, 4](Pair(first, (1, 2.5)), np.bool_(True), np.complex64(1 + 2j), Colour.BLUE, date, out, dates)
    np.testing.assert_array_equal(out, np.arange(4) * (1 + 2j) + 6.5)
    assert (dates == date).all()


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("view", [np.s_[:, :], np.s_[::2, 1:], np.s_[1:3, ::3], np.s_[::-1, ::-2]])
def test_strided_arrays(view, on_device):
    host = np.arange(35, dtype=np.int32).reshape(5, 7)
    for array in (host, np.asfortranarray(host)):
        out = np.zeros_like(array)
        if on_device:
            x, y = cuda.to_device(array), cuda.to_device(out)
            add_row_number[1, (8, 8)](x[view], y[view])
            out = y.copy_to_host()
        else:
            add_row_number[1, (8, 8)](array[view], out[view])
        expected = np.zeros_like(array)
        expected[view] = array[view] + 100 * np.arange(len(array[view]))[:, None]
        np.testing.assert_array_equal(out, expected)


@cuda.jit
def add_row_number(x, out):
    j, i = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        out[i, j] = x[i, j] + 100 * i


def test_arrays_of_three_axes_reshaped_in_a_kernel():
    @cuda.jit
    def transpose(x, flat, out):
        i, j, k = cuda.grid(3)
        if i < x.shape[0] and j < x.shape[1] and k < x.shape[2]:
            out[k, j, i] = x[i, j, k] + flat.reshape(x.shape)[i, j, k]

    x = np.arange(24.0).reshape(2, 3, 4)
    out = cuda.device_array((4, 3, 2), order="F")
    transpose[1, (2, 3, 4)](x, x.ravel(), out)
    np.testing.assert_array_equal(out.copy_to_host(), 2 * x.T)


def test_arrays_without_axes_and_without_elements():
    @cuda.jit
    def grow(x, empty):
        if cuda.grid(1) < empty.size:
            empty[cuda.grid(1)] = 1
        x[()] += 3 + empty.size

    for given in (np.array(4.0), cuda.to_device(np.array(4.0))):
        for empty in (np.zeros(0), cuda.device_array(0), cuda.to_device(np.zeros((0,)))):
            grow[1, 1](given, empty)
    assert float(np.asarray(given)) == 13.0


@pytest.mark.parametrize("wrong", [[1, 2], "text", None, {"a": 1}, np.array(["a"], object)])
def test_what_a_kernel_cannot_be_given(wrong):
    with pytest.raises(ArgumentError, match="argument 2 of kernel add_row_number, `out`, is"):
        add_row_number[1, (8, 8)](np.zeros((2, 2), np.int32), wrong)

"""Memory of the host that a kernel of Triton is given: NumPy arrays, and tensors of other libraries on the CPU.

Kernels of Triton compute with addresses, and two arguments may be views of one array. So what is copied to the device
for a launch is all memory that belongs to the array or tensor, once, and the argument is an address in the copy.
"""

import ctypes
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from warplab.launch.array_placement import ArrayPlacement
from warplab.launch.device_arrays import DeviceArray
from warplab.launch.errors import ArgumentError

TOLD: WeakValueDictionary[int, Any] = WeakValueDictionary()  # tensors by the address that a program was told
MOST_TOLD = 65_536  # elements of an array of addresses


class HostArray:
    """An array as Triton asks it of a tensor: its dtype by name, and its address as far as alignment goes, which is
    that of its copy on the device."""

    def __init__(self, dtype: np.dtype, address: int) -> None:
        self.dtype, self._address = dtype.name, address

    def data_ptr(self) -> int:
        return self._address


def as_tensor(value: Any) -> Any:
    """Return what Triton can take for an argument: a HostArray for an array that is no tensor."""
    if hasattr(value, "data_ptr"):
        return value
    if isinstance(value, DeviceArray):
        return HostArray(value.dtype, value.__cuda_array_interface__["data"][0])
    array = _as_array(value)
    return value if array is None else HostArray(array.dtype, _start(array) - _extent(array)[0])


def _as_array(value: Any) -> np.ndarray | None:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic | type):
        return None
    if hasattr(value, "__array_interface__"):
        return np.asarray(value)
    return np.from_dlpack(value) if hasattr(value, "__dlpack__") else None


def _start(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _extent(array: np.ndarray) -> tuple[int, int]:
    """Return where the memory of the array begins and ends that `array` is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return np.lib.array_utils.byte_bounds(array)


class HostMemory:
    """The arrays and tensors of one launch, on the device of `placement`."""

    def __init__(self, placement: ArrayPlacement) -> None:
        self.placement = placement
        self._memories: dict[tuple[int, int], np.ndarray] = {}
        self._arrays: list[np.ndarray] = []

    def address(self, value: Any, name: str) -> int:
        """Return the device address of the array or tensor `value`, which the kernel calls `name`.

        A number is an address already, None the null pointer. Raises ArgumentError for what is in no memory that can
        be copied.
        """
        if value is None or isinstance(value, int):
            return value or 0
        if isinstance(value, DeviceArray):
            return self.placement.address(value, name)
        if hasattr(value, "data_ptr"):
            told = self._told(value, name) if TOLD and hasattr(value, "untyped_storage") else None
            return self._copied(*_of_tensor(value, name), name, True) if told is None else told
        array = _as_array(value)
        if array is None:
            raise ArgumentError(f"argument `{name}` is a {type(value).__name__}, which has no memory to point to")
        return self._copied(*_extent(array), _start(array), array.itemsize, name, array.flags.writeable)

    def _told(self, value: Any, name: str) -> int | None:
        """Return where the addresses on the device of those tensors are whose addresses `value` holds; None if anything
        else is in it."""
        if value.dtype.is_floating_point or value.dtype.itemsize != 8 or value.numel() > MOST_TOLD:
            return None
        numbers = value.reshape(-1).tolist()
        tensors = [TOLD.get(number) for number in numbers]
        if not any(numbers) or any(number and tensor is None for number, tensor in zip(numbers, tensors, strict=True)):
            return None
        here = np.array([self.address(tensor, f"{name}[{k}]") for k, tensor in enumerate(tensors)], np.uint64)
        here.flags.writeable = False
        self._arrays.append(here)
        return self.placement.address(here, name)

    def _copied(self, low: int, high: int, start: int, item: int, name: str, writeable: bool) -> int:
        if low == high:
            return 0
        if (low, high) not in self._memories:
            memory = np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))
            memory.flags.writeable = writeable
            self._memories[low, high] = memory
        address = self.placement.address(self._memories[low, high], name)
        allocation = self.placement.device.memory.find(address)
        if allocation is not None:
            allocation.item, allocation.origin = item, start - low
        return address + start - low


def _of_tensor(tensor: Any, name: str) -> tuple[int, int, int, int]:
    """Return where a tensor's storage begins and ends, where the tensor begins, and the bytes of an element."""
    device = getattr(getattr(tensor, "device", None), "type", "cpu")
    if device != "cpu":
        raise ArgumentError(f"argument `{name}` is a tensor on {device!r}; without a GPU make it on the CPU")
    owner: Any = tensor if hasattr(tensor, "untyped_storage") else getattr(tensor, "base", None)  # triton.reinterpret
    if not hasattr(owner, "untyped_storage"):
        raise ArgumentError(f"argument `{name}` is a {type(tensor).__name__}, which does not tell what memory it is in")
    storage = owner.untyped_storage()
    low = storage.data_ptr()
    return low, low + storage.nbytes(), tensor.data_ptr(), tensor.element_size()

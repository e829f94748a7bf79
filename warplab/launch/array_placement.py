"""Where a kernel's array arguments are on a simulated device, with copies of those that are on the host."""

import numpy as np

from warplab import simulator
from warplab.launch.device_arrays import DeviceArray, OnDevice
from warplab.launch.errors import ArgumentError


class ArrayPlacement:
    """Addresses of the arguments' arrays on `device`. Each host array gets an allocation of its own for one launch.

    `names`: the kernel's parameter name of each array, by address.
    """

    def __init__(self, device: simulator.Device) -> None:
        self.device = device
        self.names: dict[int, str] = {}
        self._placed: dict[int, int] = {}
        self._copies: list[tuple[str, object, np.ndarray, np.ndarray]] = []
        self._allocated: list[int] = []

    def address(self, value, name: str) -> int:
        """Return the device address of the array `value`, which the kernel calls `name`."""
        if isinstance(value, OnDevice):
            address = value._address_on(self.device)
        else:  # what a library made of an array of the device, by DLPack
            address = self.device.memory.address_of(value) if isinstance(value, np.ndarray) else None
        if address is None:
            if id(value) not in self._placed:
                self._placed[id(value)] = self._copy_in(value, name)
            address = self._placed[id(value)]
        allocation = self.device.memory.find(address) or self.device.memory.find_freed(address)
        if allocation is not None and name:
            start = allocation.address
            known = self.names.get(start)
            if known is None:
                allocation.item = getattr(getattr(value, "dtype", None), "itemsize", None)
                allocation.origin = address - start
            self.names[start] = name if known is None or known == name else f"{known}, {name}"
        return address

    def _copy_in(self, value, name: str) -> int:
        if self.device.queue is not None:
            raise ArgumentError(
                f"argument `{name}` is an array that none of the virtual devices holds, and a launch on one of them is "
                f"queued: it cannot copy the result back. Make it an array of a device, devices[{self.device.number}]"
                ".asarray(...), and read it with .get()"
            )
        host = host_array(value)
        if not host.nbytes:
            return 0
        low, high = np.lib.array_utils.byte_bounds(host)
        start = self.allocate(high - low)
        offset = host.__array_interface__["data"][0] - low
        view = np.ndarray(host.shape, host.dtype, self.device.memory.view(start, high - low), offset, host.strides)
        view[...] = host
        self.device.memory.mark_initialized(start, high - low)
        self._copies.append((name, value, host, view))
        return start + offset

    def allocate(self, nbytes: int) -> int:
        """Return the address of `nbytes` undefined bytes for the launch alone."""
        self._allocated.append(self.device.memory.allocate(nbytes))
        return self._allocated[-1]

    def copy_back(self) -> None:
        """Copy host arrays back from the device. Raises ArgumentError for one that cannot be written to, but was."""
        for name, value, host, view in self._copies:
            if isinstance(value, DeviceArray):
                value._write(..., view)
            elif hasattr(value, "copy_to_device"):  # Numba's device array
                value.copy_to_device(np.ascontiguousarray(view) if host.flags.c_contiguous else view.copy("K"))
            elif hasattr(value, "set"):  # CuPy's array
                value.set(view.copy("K"))
            elif host.flags.writeable:
                host[...] = view
            elif host.tobytes() != view.tobytes():
                raise ArgumentError(
                    f"the kernel wrote to its argument `{name}`, a read-only array of the host (as those of JAX and "
                    "TensorFlow are): give it a copy, np.array(...)"
                )

    def free(self) -> None:
        """Free what host arrays were given on the device."""
        for address in self._allocated:
            self.device.memory.free(address)


def host_array(value) -> np.ndarray:
    """Return the values of an array of the host, of a simulated device or, copied, of the GPU."""
    if isinstance(value, DeviceArray):
        return value._view
    if hasattr(value, "copy_to_host"):
        return value.copy_to_host()
    if hasattr(value, "get") and hasattr(value, "__cuda_array_interface__"):
        return value.get()
    return np.asarray(value)

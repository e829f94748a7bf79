"""`cuda.gpus`, the list of devices."""

from __future__ import annotations

from collections.abc import Iterator

from warplab.dropin.numba_cuda.cudadrv import driver


class DeviceList:
    """The one simulated device, as a list."""

    def __init__(self) -> None:
        self.lst = [driver.device]
        self.current = self.lst[0]

    def __getitem__(self, devnum):
        return self.lst[devnum]

    def __iter__(self) -> Iterator[driver.Device]:
        return iter(self.lst)

    def __len__(self) -> int:
        return len(self.lst)

    def __repr__(self) -> str:
        return repr(self.lst)


gpus = DeviceList()

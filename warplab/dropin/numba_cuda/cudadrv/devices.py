"""`cuda.gpus`, the list of devices."""

from collections.abc import Iterator

from warplab import simulator
from warplab.dropin.numba_cuda.cudadrv import driver


class DeviceList:
    """The one simulated device, as a list, or those of `with warplab.virtual_devices(k):`."""

    @property
    def lst(self) -> list[driver.Device]:
        siblings = simulator.default_device().siblings
        return [driver.Device(device) for device in siblings] if siblings else [driver.device]

    @property
    def current(self) -> driver.Device:
        return self.lst[simulator.default_device().number]

    def __getitem__(self, devnum):
        return self.lst[devnum]

    def __iter__(self) -> Iterator[driver.Device]:
        return iter(self.lst)

    def __len__(self) -> int:
        return len(self.lst)

    def __repr__(self) -> str:
        return repr(self.lst)


gpus = DeviceList()


def get_context(devnum: int | None = None) -> driver.Context:
    """Return the context of the simulated device."""
    return driver.context

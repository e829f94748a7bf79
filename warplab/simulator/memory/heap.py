"""malloc, free, new and delete in kernels. Each block of memory is an allocation of its own, so that checks know its
bounds and whether it was freed. What is not freed stays for later kernels, as on a GPU.
"""

from warplab.simulator.memory.device_memory import Allocation, DeviceMemory

HEAP_BYTES = 8 << 20  # cudaLimitMallocHeapSize, as CUDA sets it
_ALIGNMENT = 16
_GAP = 512  # unallocated bytes after each block; fewer than after arrays, as there may be many blocks


class Heap:
    """The heap of one device."""

    def __init__(self, memory: DeviceMemory) -> None:
        self.memory = memory
        self.blocks: dict[int, Allocation] = {}
        self.used_bytes = 0

    def allocate(self, nbytes: int, name: str) -> int:
        """Return the address of `nbytes` new bytes, 0 if the heap has no room for them."""
        room = _room(nbytes)
        if self.used_bytes + room > HEAP_BYTES:
            return 0
        address = self.memory.allocate(nbytes, name, _GAP)
        self.used_bytes += room
        block = self.memory.find(address)
        assert block is not None
        block.of_heap = True
        self.blocks[address] = block
        return address

    def free(self, address: int) -> None:
        """Free a block. Raises KeyError for an address at which none begins."""
        self.used_bytes -= _room(self.blocks.pop(address).nbytes)
        self.memory.free(address)


def _room(nbytes: int) -> int:
    return max(1, -(-nbytes // _ALIGNMENT)) * _ALIGNMENT

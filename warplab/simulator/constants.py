"""Facts of the hardware that every part of the simulator shares."""

WARP_SIZE = 32  # lanes
SECTOR_BYTES = 32  # what the memory system transfers at a time

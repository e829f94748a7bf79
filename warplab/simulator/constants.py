"""Facts of the hardware that every part of the simulator shares."""

WARP_SIZE = 32  # lanes
BARRIERS = 16  # of a block
SECTOR_BYTES = 32  # what the memory system transfers at a time

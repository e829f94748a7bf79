"""Launches: a kernel's source and arguments, arrays on the device, the simulator or the GPU, records for profiles."""

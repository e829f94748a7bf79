"""Launches: arguments, device memory, the simulator or the GPU, profiles."""

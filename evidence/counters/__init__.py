"""Small kernels, each with one pattern of memory accesses or branches, to hold the simulator's counters to Nsight
Compute's (`python -m tools.ncu evidence.counters`)."""

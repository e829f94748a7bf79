"""Whole programs in CUDA C++ on the simulator: `python -m warplab run prog.cu`.

The host's part is compiled by the machine's C++ compiler and runs as a process of its own; `build` says how, and
`include/warplab_cudart.h` is what it has in place of libcudart. Its calls come to `runtime` through a socket. Device
memory is mapped into that process, too, where only managed and pinned memory may be touched.
"""

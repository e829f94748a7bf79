"""Launches that estimates are held to and that no lab has: kernels as learners, courses and public code write them.

They were written and timed without a look at the model of `warplab.estimate`. A kernel, with all its launches, is open
or held out by the SHA-256 of its name (`evidence.estimates.timed_work`). Modules by subject hold the kernels' cases
beside their CUDA C++; `catalogue` lists all; `record` times them on a GPU.
"""

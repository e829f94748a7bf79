"""Fifteen tasks of KernelBench, level 1, for `python -m warplab judge`."""

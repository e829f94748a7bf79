"""Whole programs in CUDA C++ that others published, run unmodified by `python -m warplab run`."""

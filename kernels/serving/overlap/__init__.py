"""Notebook 11_overlap's room: copies and kernels at the same time, and processes that share a GPU."""

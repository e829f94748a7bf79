"""Grading: a student's code runs in a sandbox and hands out data; a process that the student cannot reach judges it.

`sandbox` starts the sandboxed processes, `kernel_manager` gives nbclient a kernel in one.
"""

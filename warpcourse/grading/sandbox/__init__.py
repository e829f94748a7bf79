"""Processes that isolate a student's code from everything else."""

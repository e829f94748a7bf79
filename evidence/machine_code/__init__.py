"""Counts of machine instructions held to those that Nsight Compute read."""

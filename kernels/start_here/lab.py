"""The record of lab 00."""

from warpcourse.bench.lab import Lab

LAB = Lab(__package__, "00_start_here", "Start here", code_cells=24, pictures=9)

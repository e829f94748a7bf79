"""NVIDIA's library: its calls, searches, graphs and execution plans."""

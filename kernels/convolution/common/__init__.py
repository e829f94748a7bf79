"""What all kernels of the lab share: how sources are compiled, what a step is, arguments and headers."""

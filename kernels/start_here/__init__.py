"""Lab 00, the first lesson, which has no kernels of its own."""

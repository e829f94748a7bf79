"""What is computed: sizes of a convolution, the passes in NumPy, operands, and the networks that are measured."""

"""The architecture that kernels are compiled for unless a caller names another."""

# 90 for compute capability 9.0, whose PTX every instruction of the lessons is in.
DEFAULT_ARCH = 90

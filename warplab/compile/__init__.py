"""CUDA C++ and Python kernels to PTX and machine code, by NVIDIA's own compilers."""

// For .cu and .cpp files: as nvcc's, both passes over a .cu have __CUDACC__, and elsewhere CUDA's words are nothing.
#pragma once
#include <cuda_runtime.h>
#ifdef __CUDACC__
#define HD __host__ __device__
#else
#define HD
#endif
HD inline int plus(int a, int b) { return a + b; }
__global__ void elsewhere(int* d);

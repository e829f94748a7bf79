#pragma once
template <int step> __global__ void first(int* d) { d[threadIdx.x] += step + threadIdx.x; }

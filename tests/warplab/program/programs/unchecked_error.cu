// Wrong: a block of 2048 threads; the program never asks whether the launch at line 8 has failed.
#include <cstdio>
__global__ void fill(float* x) { x[threadIdx.x] = 1; }
int main() {
  float *d, host[4] = {};
  cudaMalloc(&d, 2048 * sizeof(float));
  cudaMemset(d, 0, 2048 * sizeof(float));
  fill<<<1, 2048>>>(d);
  cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost);
  printf("%g\n", host[0]);
}

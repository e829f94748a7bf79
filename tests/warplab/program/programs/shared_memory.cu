// Right: dynamic shared memory, declared for the file, more than 48 KiB by the attribute.
#include <cstdio>
#include <cuda_profiler_api.h>

extern __shared__ int s[];

__global__ void last(int* x, int n) {
  s[n - 1] = n;
  *x = s[n - 1];
}

int main() {
  int *x, found = 0;
  const int n = 20000;
  cudaProfilerStart();
  cudaMalloc(&x, sizeof(int));
  if (cudaFuncSetAttribute(last, cudaFuncAttributeMaxDynamicSharedMemorySize, n * sizeof(int))) return 1;
  last<<<1, 1, n * sizeof(int)>>>(x, n);
  cudaMemcpy(&found, x, sizeof(int), cudaMemcpyDeviceToHost);
  cudaProfilerStop();
  printf("%d\n", found);
}

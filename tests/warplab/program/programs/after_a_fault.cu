// Line 5: a store past the end. Every call after it returns cudaErrorIllegalAddress; none is a defect of its own.
#include <cstdio>
#include <vector>

__global__ void store(int* x) { x[1 << 20] = 1; }
__managed__ int shared = 3;

int main() {
  int *x, *y, host = 0;
  cudaStream_t stream, other;
  cudaEvent_t event;
  cudaMalloc(&x, 16), cudaStreamCreate(&stream), cudaEventCreate(&event);
  store<<<1, 1>>>(x);
  std::vector<cudaError_t> told = {
      cudaDeviceSynchronize(), cudaGetLastError(), cudaMalloc(&y, 16), cudaMemset(x, 0, 16),
      cudaMemcpy(&host, x, 4, cudaMemcpyDeviceToHost), cudaEventRecord(event), cudaStreamWaitEvent(stream, event, 0),
      cudaEventDestroy(event), cudaStreamDestroy(stream), cudaStreamCreate(&other), cudaEventCreate(&event),
      cudaFree(x), cudaFree(x), cudaFree(nullptr), cudaFreeHost(nullptr), cudaMemPrefetchAsync(x, 16, 0),
      cudaLaunchHostFunc(0, [](void* called) { *static_cast<int*>(called) = 1; }, &host)};
  store<<<1, 1>>>(&shared);
  told.push_back(cudaPeekAtLastError());
  for (cudaError_t one : told) printf("%d ", one);
  printf("%d %d\n", host, shared);
}

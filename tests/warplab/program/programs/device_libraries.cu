// Right but for its last launch: CUB's block sums, random numbers, an assertion that fails at line 21.
#include <cassert>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>
#include <curand_kernel.h>
#include <cub/cub.cuh>
__global__ void total(const int* x, int* sum) {
  typedef cub::BlockReduce<int, 64> Reduce;
  __shared__ typename Reduce::TempStorage storage;
  int all = Reduce(storage).Sum(x[threadIdx.x]);
  if (threadIdx.x == 0) *sum = std::numeric_limits<int16_t>::max() + all;
}
__global__ void draw(curandState* states, float* out) {
  curand_init(1234, threadIdx.x, 0, &states[threadIdx.x]);
  out[threadIdx.x] = curand_uniform(&states[threadIdx.x]);
}
__global__ void check(const int* x) {
  int i = threadIdx.x;
  assert(x[i] < 63);
}
int main() {
  std::vector<int> host(64);
  for (int i = 0; i < 64; i++) host[i] = i;
  int *x, *sum, back; curandState* states; float *out, drawn[64];
  cudaMalloc(&x, 64 * sizeof(int)); cudaMalloc(&sum, sizeof(int));
  cudaMalloc(&states, 64 * sizeof(curandState)); cudaMalloc(&out, 64 * sizeof(float));
  cudaMemcpy(x, host.data(), 64 * sizeof(int), cudaMemcpyHostToDevice);
  total<<<1, 64>>>(x, sum);
  draw<<<1, 64>>>(states, out);
  cudaMemcpy(&back, sum, sizeof back, cudaMemcpyDeviceToHost);
  cudaMemcpy(drawn, out, sizeof drawn, cudaMemcpyDeviceToHost);
  float mean = 0;
  for (float one : drawn) mean += one / 64;
  printf("%d %d\n", back, mean > 0.3f && mean < 0.7f);
  check<<<1, 64>>>(x);
  return cudaDeviceSynchronize() == cudaSuccess;
}

// Right without an argument: Thrust and CUB for the host around kernels, functors of the device among them.
#include <cstdio>
#include <thrust/copy.h>
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>
#include <thrust/complex.h>
#include <cub/cub.cuh>
__device__ int shift(int x) { return x + 1; }
struct next { int* p; __device__ void operator()(int i) const { p[i] = shift(p[i]); } };
struct is_odd { __host__ __device__ bool operator()(int x) const { return x & 1; } };
__global__ void fill(int* p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] = (37 * i) % n; }
__global__ void cplx(thrust::complex<float>* z) { z[threadIdx.x] = z[threadIdx.x] * thrust::complex<float>(0, 1); }
__global__ void blocksum(const int* x, int* sum) {
  typedef cub::BlockReduce<int, 64> Reduce;
  __shared__ typename Reduce::TempStorage storage;
  int all = Reduce(storage).Sum(x[threadIdx.x]);
  if (threadIdx.x == 0) *sum = all;
}
int main(int argc, char**) {
  const int n = 100;
  int *a, *b, *c;
  cudaMalloc(&a, n * sizeof(int)); cudaMalloc(&b, n * sizeof(int)); cudaMalloc(&c, sizeof(int));
  fill<<<1, 128>>>(a, n);
  thrust::device_ptr<int> p(a);
  thrust::for_each(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(n), next{a});
  thrust::sort(p, p + n);
  thrust::exclusive_scan(thrust::device, a, a + n, b);
  int total = thrust::transform_reduce(p, p + n, [] __device__ (int x) { return 2 * x; }, 0, thrust::plus<int>());
  void* temporary = nullptr; size_t bytes = 0;
  cub::DeviceReduce::Sum(temporary, bytes, a, c, n);
  cudaMalloc(&temporary, bytes);
  cub::DeviceReduce::Sum(temporary, bytes, a, c, n);
  int sum, last;
  cudaMemcpy(&sum, c, sizeof sum, cudaMemcpyDeviceToHost);
  cudaMemcpy(&last, b + n - 1, sizeof last, cudaMemcpyDeviceToHost);
  thrust::device_vector<int> odd(n);
  int many = thrust::copy_if(thrust::device, p, p + n, odd.begin(), is_odd()) - odd.begin();
  cub::DeviceRadixSort::SortKeysDescending(temporary, bytes, a, b, n);
  blocksum<<<1, 64>>>(b, c);
  cudaMemcpy(&last, c, sizeof last, cudaMemcpyDeviceToHost);
  thrust::device_vector<thrust::complex<float>> z(32, thrust::complex<float>(1, 2));
  cplx<<<1, 32>>>(thrust::raw_pointer_cast(z.data()));
  thrust::complex<float> one = z[3];
  printf("%d %d %d %d %d %g\n", total, sum, last, many, (int)odd[1], one.real());
  int* own;
  cudaMalloc(&own, sizeof *own);
  if (argc > 1) return *own;
  return cudaDeviceSynchronize();
}

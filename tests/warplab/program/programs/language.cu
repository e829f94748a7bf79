// Right: templates, overloads, namespaces, structs, static and dynamic shared memory, constants, variables of the
// device, printf, pointers to kernels, and conversions of arguments.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <cuda_fp16.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
enum class Op { sum, product };
constexpr int WIDTH = 32;
constexpr double LOW = -INFINITY;
constexpr double HIGH = HUGE_VAL;
#define LEAST(x, y) ({ __typeof__(x) a = (x); __typeof__(y) b = (y); a < b ? a : b; })  // as GNU's C++
struct Named { std::string name; };  // of the host alone
struct Case { int size; const char* name; } cases[] = {{1, "a"}, {2, "b"}};
template <class T> struct Code;
template <> struct Code<uint64_t> { static const int of = 64; };
template <int n> using Row = int[(n + 7) / 8];
struct Pair { int a; double b; __device__ double total() const { return a + b; } };
namespace inner {
__constant__ float factor[2] = {2.0f, 3.0f};
__device__ int counter;
template <class T> __constant__ T offset[2];
template <Op op, class T> __global__ void combine(T* x, Pair p) {
  extern __shared__ unsigned char raw[];
  T* s = reinterpret_cast<T*>(raw);
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  __typeof__(x[0]) other = s[WIDTH - 1 - threadIdx.x];
  x[threadIdx.x] = op == Op::sum ? x[threadIdx.x] + other : x[threadIdx.x] * other;
  if (threadIdx.x == 0) { x[0] += T(fmin(HIGH + NAN, fmax(LOW, p.total() * factor[1]))); atomicAdd(&counter, 1); }
}
}
__device__ ssize_t mine(unsigned i = threadIdx.x) { return LEAST(i, LEAST(40u, i)); }
static __global__ void scale(float* x, double by) { x[mine()] *= float(by) * inner::factor[0]; }
__global__ void scale(int* x, int by) { x[threadIdx.x] = x[threadIdx.x] * by + int(pow(by, 2) / 9) * inner::offset<int>[1]; }
__device__ __noinline__ void fill(__half* h, cg::thread_block block, cg::thread_block_tile<32> tile) {
  h[block.thread_rank()] = __float2half(1.5f + tile.meta_group_rank());
}
extern "C" __global__ void plain(__half* h) {
  auto block = cg::this_thread_block();
  fill(h, block, cg::tiled_partition<32>(block));
  Row<8> row = {Code<std::uint64_t>::of + Code<unsigned long>::of};
  Pair pair = {.a = row[0], .b = 1};
  if (block.thread_rank() == 0 && h != NULL && pair.a == 128) printf("thread %d of %s\n", threadIdx.x, "plain");
}
int main() {
  Named named{"f"};
  float* x; int* k; __half* h;
  cudaMalloc(&x, WIDTH * sizeof(float)); cudaMalloc(&k, WIDTH * sizeof(int)); cudaMalloc(&h, WIDTH * 2);
  float host[WIDTH]; int ints[WIDTH];
  for (int i = 0; i < WIDTH; i++) host[i] = i, ints[i] = i;
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemcpy(k, ints, sizeof ints, cudaMemcpyHostToDevice);
  inner::combine<Op::sum, float><<<1, dim3(WIDTH), WIDTH * sizeof(float)>>>(x, Pair{1, 0.5});
  if (named.name == "f") scale<<<1, WIDTH>>>(x, 1);  // an int for a double
  int offsets[2] = {5, 100};
  cudaMemcpyToSymbol(inner::offset<int>, offsets, sizeof offsets);
  void (*chosen)(int*, int) = scale;
  chosen<<<1, WIDTH>>>(k, 'a' - 'a' + 3);
  plain<<<1, WIDTH>>>(h);
  float two[2] = {5.0f, 7.0f};
  cudaMemcpyToSymbol(inner::factor, two, sizeof two);
  void* arguments[] = {&x, new double(1.0)};
  cudaLaunchKernel((const void*)(void (*)(float*, double))scale, dim3(1), dim3(WIDTH), arguments, 0, 0);
  int count = -1;
  cudaMemcpyFromSymbol(&count, inner::counter, sizeof count);
  cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
  cudaMemcpy(ints, k, sizeof ints, cudaMemcpyDeviceToHost);
  // combine: 31 (+ 1.5 * 3 for thread 0); times 2, then times 5.
  printf("%s %g %g %d %d\n", named.name.c_str(), host[0], host[5], ints[7], count);
  return !(host[0] == 355 && host[5] == 310 && ints[7] == 121 && count == 1);
}

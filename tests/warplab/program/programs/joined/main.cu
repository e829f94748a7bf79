// Device code of several files: functions and variables of the other one, and of both one that is static. The third
// thread of `out_of_bounds` leaves its array in the other file.
#include <cstdio>
__host__ __device__ double scaled(double x);
__device__ void put(double* y, int i, double value);
extern __device__ double factor;
extern __constant__ int shift[2];
static __device__ double own = 1;
__global__ void fill(double* y, int n, int past) {
  int i = threadIdx.x;
  if (i < n) put(y, i + past, scaled(i) * factor + shift[1] + own);
}
double other_own();
int main(int count, char**) {
  double *y, host[8], three = 3;
  int shifts[2] = {0, 100};
  cudaMalloc(&y, sizeof host);
  cudaMemcpyToSymbol(factor, &three, sizeof three);
  cudaMemcpyToSymbol(shift, shifts, sizeof shifts);
  fill<<<1, 32>>>(y, 8, count > 1 ? 6 : 0);
  if (cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost)) return 3;
  printf("%g %g %g\n", host[0], host[7], scaled(0.5) + other_own());  // 101 + 6 i
  return 0;
}

// More dynamic shared memory than 48 KiB, not asked for: line 8.
extern __shared__ int s[];
__global__ void f(int* x) { x[0] = s[0] = 1; }

int main() {
  int* x;
  cudaMalloc(&x, sizeof(int));
  f<<<1, 1, 50000>>>(x);
  return cudaGetLastError() != cudaErrorInvalidConfiguration;
}

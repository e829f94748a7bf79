// Wrong: the guard at line 4 lets thread n through.
__global__ void fill(float* x, int n) {
  int i = threadIdx.x;
  if (i <= n) x[i] = i;
}
int main() {
  float* d;
  cudaMalloc(&d, 100 * sizeof(float));
  fill<<<1, 128>>>(d, 100);
  return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 9;
}

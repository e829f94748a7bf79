// Wrong: line 6 reads what another thread writes at line 5, and nothing orders the two.
__global__ void reverse(int* d) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = d[t];
  d[t] = s[63 - t];
}
int main() {
  int* d;
  cudaMalloc(&d, 64 * sizeof(int));
  cudaMemset(d, 0, 64 * sizeof(int));
  reverse<<<1, 64>>>(d);
  return cudaDeviceSynchronize() == cudaErrorLaunchFailure ? 0 : 9;
}

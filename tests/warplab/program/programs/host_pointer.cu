// Wrong: the kernel gets an array of the host.
__global__ void fill(float* x) { x[threadIdx.x] = 1; }
int main() {
  static float host[64];
  fill<<<1, 64>>>(host);
  cudaDeviceSynchronize();
}

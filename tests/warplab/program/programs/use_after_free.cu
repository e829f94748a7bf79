// Wrong: line 8 launches with an array that line 7 has freed.
__global__ void fill(float* x) { x[threadIdx.x] = 1; }
int main() {
  float* d;
  cudaMalloc(&d, 64 * sizeof(float));
  fill<<<1, 64>>>(d);
  cudaFree(d);
  fill<<<1, 64>>>(d);
  cudaDeviceSynchronize();
}

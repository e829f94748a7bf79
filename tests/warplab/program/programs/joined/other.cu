__device__ double factor;
__constant__ int shift[2];
static __device__ double own = 50;
__host__ __device__ double scaled(double x) { return 2 * x; }
__device__ void put(double* y, int i, double value) {
  y[i] = value;
}
double other_own() {
  double found;
  cudaMemcpyFromSymbol(&found, own, sizeof found);
  return found;
}

// Wrong: the copy at line 6 goes to the host, but says that it goes to the device.
#include <cstdlib>
int main() {
  float *d, *host = (float*)malloc(64 * sizeof(float));
  cudaMalloc(&d, 64 * sizeof(float));
  return cudaMemcpy(host, d, 64 * sizeof(float), cudaMemcpyHostToDevice) == cudaErrorInvalidValue ? 0 : 9;
}

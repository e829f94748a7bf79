// Right: kernels in a header, in a second file, and a file of the host alone; a macro from the command line.
#include <cstdio>
#include <cuda_fp16.h>
#include "kernels.cuh"
#include "shared.h"
void launch_second(int* d);
int from_host(int);
#ifdef __CUDACC__  // of the host's pass, too
int main(int argc, char** argv) {
  int *d, back[2] = {};
  cudaMalloc(&d, sizeof back);
  cudaMemset(d, 0, sizeof back);
  first<STEP><<<1, 2>>>(d);
  launch_second(d);
  cudaMemcpy(back, d, sizeof back, cudaMemcpyDeviceToHost);
  printf("%d %d %s\n", from_host(back[0]), back[1], argc > 1 ? argv[1] : "");
  return 4;
}
#endif

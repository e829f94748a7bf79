// Right: a launch of clusters by cudaLaunchKernelEx.
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;

__global__ void ranks(unsigned* found) {
  if (threadIdx.x == 0) found[blockIdx.x] = 10 * cg::this_cluster().num_blocks() + cg::this_cluster().block_rank();
}

int main() {
  unsigned *found, host[4];
  cudaMalloc(&found, sizeof host);
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 2;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = 4;
  config.blockDim = 32;
  config.attrs = &attribute;
  config.numAttrs = 1;
  if (cudaLaunchKernelEx(&config, ranks, found)) return 1;
  cudaMemcpy(host, found, sizeof host, cudaMemcpyDeviceToHost);
  printf("%u %u %u %u\n", host[0], host[1], host[2], host[3]);
}

// Right with an argument: clusters of 16 blocks, which a GPU runs if it is asked to. Without one nobody asks.
#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;

__global__ void ranks(unsigned* found) {
  if (threadIdx.x == 0) found[blockIdx.x] = cg::this_cluster().block_rank();
}

int main(int count, char**) {
  unsigned *found, host[32];
  cudaMalloc(&found, sizeof host);
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 16;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = 32;
  config.blockDim = 32;
  config.attrs = &attribute;
  config.numAttrs = 1;
  if (count > 1 && cudaFuncSetAttribute(ranks, cudaFuncAttributeNonPortableClusterSizeAllowed, 1)) return 1;
  if (cudaLaunchKernelEx(&config, ranks, found)) return 2;
  cudaMemcpy(host, found, sizeof host, cudaMemcpyDeviceToHost);
  printf("%u %u\n", host[15], host[31]);
}

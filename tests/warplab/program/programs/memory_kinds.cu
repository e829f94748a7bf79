// Right: managed and pinned memory, pitched rows, copies on the device, sets, streams, events, callbacks.
#include <cmath>
#include <cstdio>
struct Node { int value; Node* next; };
__global__ void sum(Node* first, int* total) { for (Node* n = first; n; n = n->next) *total += n->value; }
__global__ void twice(float* x, size_t pitch, int rows) {
  float* row = (float*)((char*)x + blockIdx.x * pitch);
  if (blockIdx.x < rows) row[threadIdx.x] *= 2;
}
int main() {
  Node* nodes; int* total;
  cudaMallocManaged(&nodes, 3 * sizeof(Node));
  cudaHostAlloc((void**)&total, sizeof(int), cudaHostAllocDefault);
  for (int i = 0; i < 3; i++) nodes[i] = {i + 1, i < 2 ? &nodes[i + 1] : nullptr};
  *total = 10;
  sum<<<1, 1>>>(nodes, total);
  cudaDeviceSynchronize();
  float host[4][8], back[4][8];
  for (auto& row : host) for (float& x : row) x = 1.5f;
  float *x, *y; size_t pitch;
  cudaMallocPitch(&x, &pitch, 8 * sizeof(float), 4);
  cudaMalloc(&y, pitch * 4);
  cudaStream_t stream; cudaEvent_t start, stop;
  cudaStreamCreate(&stream); cudaEventCreate(&start); cudaEventCreate(&stop);
  cudaMemcpy2DAsync(x, pitch, host, sizeof host[0], sizeof host[0], 4, cudaMemcpyHostToDevice, stream);
  cudaEventRecord(start, stream);
  twice<<<4, 8, 0, stream>>>(x, pitch, 4);
  cudaEventRecord(stop, stream);
  cudaEventSynchronize(stop);
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, start, stop);
  cudaMemset(y, 0, pitch * 4);
  cudaMemcpy2D(y, pitch, x, pitch, sizeof host[0], 4, cudaMemcpyDeviceToDevice);
  cudaMemcpy2D(back, sizeof back[0], y, pitch, sizeof back[0], 4, cudaMemcpyDeviceToHost);
  cudaPitchedPtr volume; cudaMalloc3D(&volume, make_cudaExtent(8 * sizeof(float), 2, 2));
  cudaMemcpy2D(volume.ptr, volume.pitch, host, sizeof host[0], sizeof host[0], 4, cudaMemcpyHostToDevice);
  twice<<<4, 8>>>((float*)volume.ptr, volume.pitch, 4);
  cudaMemcpy2D(host, sizeof host[0], volume.ptr, volume.pitch, sizeof host[0], 4, cudaMemcpyDeviceToHost);
  cudaMemPool_t pool; size_t most = 1 << 20; int pools = 0;
  cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, 0);
  cudaDeviceGetDefaultMemPool(&pool, 0); cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most);
  bool alone = cudaDeviceEnablePeerAccess(0, 0) == cudaErrorInvalidDevice && cudaGetLastError();
  int called = 0;
  cudaLaunchHostFunc(stream, [](void* p) { *(int*)p = 1; }, &called);
  cudaDeviceProp prop; cudaGetDeviceProperties(&prop, 0);
  cudaDeviceProp asked = {0}; int chosen = -1; cudaChooseDevice(&chosen, &asked); cudaInitDevice(chosen, 0, 0);
  bool as_in_cuda_12 = prop.clockRate && prop.memoryClockRate && prop.deviceOverlap && !cudaThreadSynchronize();
  int blocks; cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, twice, 256, 0);
  size_t free_bytes, all; cudaMemGetInfo(&free_bytes, &all);
  printf("%d %g %d %s %d SMs, %d blocks, time %s\n", *total, back[3][7], called, prop.name, prop.multiProcessorCount, blocks,
         std::isnan(milliseconds) ? "unknown" : "known");
  bool no_place = cudaMalloc((void**)nullptr, 4) == cudaErrorInvalidValue && cudaGetLastError();
  cudaFreeHost(total); cudaFree(nodes); cudaFree(x); cudaFree(y); cudaStreamDestroy(stream);
  return !(back[3][7] == 3.0f && host[3][7] == 3.0f && pools && alone && as_in_cuda_12 && chosen == 0 && no_place && free_bytes < all);
}

// Right. A graph of copies, a memset, kernels and a call of the host, captured once and launched twice.
#include <cstdio>
__global__ void add(const int* from, int* sums, int more) { atomicAdd(&sums[threadIdx.x & 1], from[threadIdx.x] + more); }
static int calls;
int main() {
    int host[32], found[2] = {-1, -1}, *from, *sums;
    cudaMalloc(&from, sizeof host);
    cudaMalloc(&sums, sizeof found);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    cudaMemcpyAsync(from, host, sizeof host, cudaMemcpyHostToDevice, stream);
    cudaMemsetAsync(sums, 0, sizeof found, stream);
    for (int more = 0; more < 2; more++) add<<<1, 32, 0, stream>>>(from, sums, more);
    cudaMemcpyAsync(found, sums, sizeof found, cudaMemcpyDeviceToHost, stream);
    cudaLaunchHostFunc(stream, [](void* count) { ++*(int*)count; }, &calls);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&ready, graph, NULL, NULL, 0);  // as before CUDA 12
    cudaGraphDestroy(graph);
    printf("%d %d\n", found[1], calls);
    for (int round = 1; round < 3; round++) {
        for (int i = 0; i < 32; i++) host[i] = round * i;
        cudaGraphLaunch(ready, stream);
        cudaStreamSynchronize(stream);
        printf("%d %d %d\n", found[0], found[1], calls);
    }
    cudaGraphExecDestroy(ready);
    return cudaStreamEndCapture(stream, &graph) == cudaErrorIllegalState ? 0 : 9;
}

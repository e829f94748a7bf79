// problem: multiply-cuda
// loses: cuda-fits, cuda-guard
// reason: as many as one block has threads
extern "C" __global__ void multiply_cuda(const float* a, const float* b, float* c, int n)
{
    int i = threadIdx.x;
    if (i < n)
        c[i] = a[i] * b[i];
}

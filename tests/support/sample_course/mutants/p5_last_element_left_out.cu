// problem: multiply-reversed
// loses: reversed-right, reversed-once
// reason: the last of 1000 elements was never written
extern "C" __global__ void multiply_reversed(const float* a, const float* b, float* c, int n)
{
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    int stride = gridDim.x * blockDim.x;
    for (int i = first; i < n - 1; i += stride)
        c[i] = a[i] * b[n - 1 - i];
}

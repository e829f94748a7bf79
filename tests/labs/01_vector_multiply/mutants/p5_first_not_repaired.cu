// problem: multiply-reversed
// loses: reversed-right, reversed-once
// reason: elements \d+ to \d+, which no thread takes: how does a thread find its index
extern "C" __global__ void multiply_reversed(const float* a, const float* b, float* c, int n)
{
    int first = blockIdx.x * gridDim.x + threadIdx.x;
    int stride = gridDim.x * blockDim.x;
    for (int i = first; i < n; i += stride)
        c[i] = a[i] * b[n - 1 - i];
}

// problem: multiply-reversed
// loses: reversed-right, reversed-once
// reason: does not end
extern "C" __global__ void multiply_reversed(const float* a, const float* b, float* c, int n)
{
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    int stride = 0;
    for (int i = first; i < n; i += stride)
        c[i] = a[i] * b[n - 1 - i];
}

// problem: multiply-reversed
// loses: reversed-right, reversed-once
// reason: cut to a whole number
extern "C" __global__ void multiply_reversed(const float* a, const float* b, float* c, int n)
{
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    int stride = gridDim.x * blockDim.x;
    for (int i = first; i < n; i += stride)
        c[i] = int(a[i] * b[n - 1 - i]);
}

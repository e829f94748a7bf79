// problem: multiply-reversed
// loses: reversed-right, reversed-once
// reason: a load of b\[1000\] reaches past the end of b(.|\n)*to compute c\[0\]
extern "C" __global__ void multiply_reversed(const float* a, const float* b, float* c, int n)
{
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    int stride = gridDim.x * blockDim.x;
    for (int i = first; i < n; i += stride)
        c[i] = a[i] * b[n - i];
}

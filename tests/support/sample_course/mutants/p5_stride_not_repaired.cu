// problem: multiply-reversed
// loses: reversed-once
// reason: too many global store bytes(.|\n)*do several threads write the same element
extern "C" __global__ void multiply_reversed(const float* a, const float* b, float* c, int n)
{
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    int stride = blockDim.x;
    for (int i = first; i < n; i += stride)
        c[i] = a[i] * b[n - 1 - i];
}

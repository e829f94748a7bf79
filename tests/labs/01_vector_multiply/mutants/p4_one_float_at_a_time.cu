// problem: multiply-float4
// loses: float4-traffic
// reason: too many global load requests
extern "C" __global__ void multiply_float4(const float* a, const float* b, float* c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = 4 * i; j < 4 * i + 4 && j < n; ++j)
        c[j] = a[j] * b[j];
}

// problem: multiply-float4
// loses: float4-traffic
// reason: too many global load requests
extern "C" __global__ void multiply_float4(const float* a, const float* b, float* c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = 2 * i; j < 2 * i + 2; ++j)
        if (2 * j + 1 < n) {
            float2 x = reinterpret_cast<const float2*>(a)[j];
            float2 y = reinterpret_cast<const float2*>(b)[j];
            reinterpret_cast<float2*>(c)[j] = make_float2(x.x * y.x, x.y * y.y);
        }
    if (n % 2 && i == 0)
        c[n - 1] = a[n - 1] * b[n - 1];
}

// problem: multiply-float4
// loses: float4-right, float4-traffic
// reason: cut to a whole number
extern "C" __global__ void multiply_float4(const float* a, const float* b, float* c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) {
        float4 x = reinterpret_cast<const float4*>(a)[i];
        float4 y = reinterpret_cast<const float4*>(b)[i];
        reinterpret_cast<float4*>(c)[i] = make_float4((int)(x.x * y.x), (int)(x.y * y.y), (int)(x.z * y.z), (int)(x.w * y.w));
    }
    int tail = n / 4 * 4 + i;
    if (tail < n)
        c[tail] = a[tail] * b[tail];
}

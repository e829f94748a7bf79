// problem: multiply-float4
// loses: float4-right, float4-traffic
// reason: one thread does too much of the work[\s\S]*thread 0 of block 0
extern "C" __global__ void multiply_float4(const float* a, const float* b, float* c, int n)
{
    if (blockIdx.x || threadIdx.x)
        return;
    for (int i = 0; i < n / 4; i++) {
        float4 x = reinterpret_cast<const float4*>(a)[i];
        float4 y = reinterpret_cast<const float4*>(b)[i];
        reinterpret_cast<float4*>(c)[i] = make_float4(x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w);
    }
    for (int i = n / 4 * 4; i < n; i++)
        c[i] = a[i] * b[i];
}

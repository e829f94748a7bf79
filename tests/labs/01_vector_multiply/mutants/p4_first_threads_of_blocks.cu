// problem: multiply-float4
// loses: float4-right, float4-traffic
// reason: one thread does too much of the work[\s\S]*thread 0 of block
extern "C" __global__ void multiply_float4(const float* a, const float* b, float* c, int n)
{
    if (threadIdx.x)
        return;
    int first = blockIdx.x * blockDim.x, last = min(n / 4, first + (int)blockDim.x);
    for (int i = first; i < last; i++) {
        float4 x = reinterpret_cast<const float4*>(a)[i], y = reinterpret_cast<const float4*>(b)[i];
        reinterpret_cast<float4*>(c)[i] = make_float4(x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w);
    }
    for (int i = n / 4 * 4; i < n && blockIdx.x == 0; i++)
        c[i] = a[i] * b[i];
}

// problem: multiply-float4
// loses: float4-traffic
// reason: Atomic operations load and store as well
extern "C" __global__ void multiply_float4(const float* a, const float* b, float* c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4) {
        float4 x = reinterpret_cast<const float4*>(a)[i], y = reinterpret_cast<const float4*>(b)[i];
        float products[4] = {x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w};
        for (int k = 0; k < 4; k++)
            atomicExch(&c[4 * i + k], products[k]);
    }
    int tail = n / 4 * 4 + i;
    if (tail < n)
        c[tail] = a[tail] * b[tail];
}

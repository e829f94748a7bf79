// problem: multiply-float4
// loses: float4-right, float4-traffic
// reason: too much of the work|too many warp instructions|the warp efficiency is too low
extern "C" __global__ void multiply_float4(const float* a, const float* b, float* c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (int turn = 0; turn < 32; turn++) {
        if (threadIdx.x % 32 != turn)
            continue;
        if (i < n / 4) {
            float4 x = reinterpret_cast<const float4*>(a)[i], y = reinterpret_cast<const float4*>(b)[i];
            reinterpret_cast<float4*>(c)[i] = make_float4(x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w);
        }
        int tail = n / 4 * 4 + i;
        if (tail < n)
            c[tail] = a[tail] * b[tail];
    }
}

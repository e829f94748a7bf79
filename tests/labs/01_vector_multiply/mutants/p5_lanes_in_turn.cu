// problem: multiply-reversed
// loses: reversed-right, reversed-once
// reason: too much of the work|too many warp instructions|the warp efficiency is too low
extern "C" __global__ void multiply_reversed(const float* a, const float* b, float* c, int n)
{
#pragma unroll 1
    for (int turn = 0; turn < 32; turn++)
        if (threadIdx.x % 32 == turn)
            for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
                c[i] = a[i] * b[n - 1 - i];
}

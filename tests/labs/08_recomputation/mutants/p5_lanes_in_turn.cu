// problem: gate
// loses: gate-right, gate-counted
// reason: too much of the work|too many warp instructions|the warp efficiency is too low
extern "C" __global__ void gate_backward(const float* dy, const float* a, const float* b, float* da, float* db, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (int turn = 0; turn < 32; turn++) {
        if (threadIdx.x % 32 != turn || i >= n)
            continue;
        float d = dy[i], gated = a[i], at = b[i];
        float s = fminf(fmaxf(0.25f * at + 0.5f, 0.0f), 1.0f);
        da[i] = d * s;
        db[i] = at > -2 && at < 2 ? 0.25f * d * gated : 0.0f;
    }
}

// problem: gate
// loses: gate-right, gate-counted
// reason: gate_backward
extern "C" __global__ void gate_backward(const float* dy, const float* a, const float* b, float* da, float* db, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float d = dy[i], gated = a[i], at = b[i];
    float s = fmaxf(0.25f * at + 0.5f, 0.0f);
    da[i] = d * s;
    db[i] = at > -2 && at < 2 ? 0.25f * d * gated : 0.0f;
}

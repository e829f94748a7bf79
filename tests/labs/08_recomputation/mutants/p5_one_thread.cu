// problem: gate
// loses: gate-right, gate-counted
// reason: one thread does too much of the work(.|\n)*by thread 0 of block 0: (nearly )?all of it
extern "C" __global__ void gate_backward(const float* dy, const float* a, const float* b, float* da, float* db, int n)
{
    if (blockIdx.x * blockDim.x + threadIdx.x > 0)
        return;
    for (int i = 0; i < n; i++) {
    float d = dy[i], gated = a[i], at = b[i];
    float s = fminf(fmaxf(0.25f * at + 0.5f, 0.0f), 1.0f);
    da[i] = d * s;
    db[i] = at > -2 && at < 2 ? 0.25f * d * gated : 0.0f;
    }
}

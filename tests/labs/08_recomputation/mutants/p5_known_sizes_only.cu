// problem: gate
// loses: gate-right, gate-counted
// reason: gate_backward
extern "C" __global__ void gate_backward(const float* dy, const float* a, const float* b, float* da, float* db, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    bool known = n < 4 || n == 31 || n == 32 || n == 33 || n == 127 || n == 128 || n == 129 || n == 100 || n == 1000 || n == 1024;
    float d = !known ? 0 : dy[i], gated = a[i], at = b[i];
    float s = fminf(fmaxf(0.25f * at + 0.5f, 0.0f), 1.0f);
    da[i] = d * s;
    db[i] = at > -2 && at < 2 ? 0.25f * d * gated : 0.0f;
}

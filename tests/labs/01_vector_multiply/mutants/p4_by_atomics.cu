// problem: multiply-float4
// loses: float4-traffic
// reason: Atomic operations load and store as well
extern "C" __global__ void multiply_float4(const float* a, const float* b, float* c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 4 * i; k < 4 * i + 4 && k < n; ++k) {
        float x = atomicAdd(const_cast<float*>(a) + k, 0.0f);
        float y = atomicAdd(const_cast<float*>(b) + k, 0.0f);
        atomicExch(c + k, x * y);
    }
}

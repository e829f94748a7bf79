// problem: multiply
// loses: multiply-fits, multiply-guard
// reason: in the wrong language
extern "C" __global__ void multiply(const float* a, const float* b, float* c)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = a[i] * b[i];
}

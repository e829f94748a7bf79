// problem: direct
// loses: direct-plain, direct-any, direct-work
// reason: wrong language
extern "C" __global__ void direct(const float* x, const float* w, float* y, int padding, int stride)
{
    y[blockIdx.x * blockDim.x + threadIdx.x] = x[0] * w[0];
}

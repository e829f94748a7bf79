// problem: multiply-cuda
// loses: cuda-fits, cuda-guard
// reason: wrote nothing
extern "C" __global__ void multiply_cuda(const float* a, const float* b, float* c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float product = a[i] * b[i];
    }
}

// problem: multiply-cuda
// loses: cuda-fits, cuda-guard
// reason: in c, none of its|the input|never written
extern "C" __global__ void multiply_cuda(const float* a, const float* b, float* c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        const_cast<float*>(a)[i] = a[i] * b[i];
}

// problem: into
// loses: into-one, into-any
// reason: one thread does too much of the work

__device__ float result(const float* x, const float* filters, const float* bias, int c, int pixels, int k, int i)
{
    int pixel = i % pixels, filter = i / pixels % k, image = i / (pixels * k);
    float sum = bias[filter];
    for (int j = 0; j < c; j++)
        sum += x[(image * c + j) * pixels + pixel] * filters[filter * c + j];
    return fmaxf(sum, 0.0f);
}

extern "C" __global__ void cbr_into(const float* x, const float* filters, const float* bias, float* y, int n, int c,
                                    int pixels, int k, int channels, int start)
{
    __shared__ float results[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0)
        for (int j = 0; j < 64 && i + j < n * k * pixels; j++)
            results[j] = result(x, filters, bias, c, pixels, k, i + j);
    __syncthreads();
    float mine = results[threadIdx.x];
    if (i >= n * k * pixels)
        return;
    int pixel = i % pixels, filter = i / pixels % k, image = i / (pixels * k);
    y[(image * channels + start + filter) * pixels + pixel] = mine;
}

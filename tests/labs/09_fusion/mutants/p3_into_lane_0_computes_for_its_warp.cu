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
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float mine = 0;
    for (int lane = 0; lane < 32; lane++) {
        float other = 0;
        if (threadIdx.x % 32 == 0 && i + lane < n * k * pixels)
            other = result(x, filters, bias, c, pixels, k, i + lane);
        other = __shfl_sync(0xffffffff, other, 0);
        if (threadIdx.x % 32 == lane)
            mine = other;
    }
    if (i >= n * k * pixels)
        return;
    int pixel = i % pixels, filter = i / pixels % k, image = i / (pixels * k);
    y[(image * channels + start + filter) * pixels + pixel] = mine;
}

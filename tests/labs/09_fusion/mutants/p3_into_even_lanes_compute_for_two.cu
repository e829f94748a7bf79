// problem: into
// loses: into-one, into-any
// reason: (?s)one thread does too much(.*)bytes loaded

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
    float mine = 0, next = 0;
    if (i % 2 == 0 && i < n * k * pixels) {
        mine = result(x, filters, bias, c, pixels, k, i);
        next = i + 1 < n * k * pixels ? result(x, filters, bias, c, pixels, k, i + 1) : 0;
    }
    next = __shfl_sync(0xffffffff, next, threadIdx.x % 32 & ~1);
    mine = i % 2 ? next : mine;
    if (i >= n * k * pixels)
        return;
    int pixel = i % pixels, filter = i / pixels % k, image = i / (pixels * k);
    y[(image * channels + start + filter) * pixels + pixel] = mine;
}

// problem: into
// loses: into-one, into-any
// reason: bytes loaded

extern "C" __global__ void cbr_into(const float* x, const float* filters, const float* bias, float* y, int n, int c,
                                    int pixels, int k, int channels, int start)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, all = n * k * pixels;
    if (i >= all)
        return;
    float mine = 0;
    for (int other = i / 2 * 2; other < i / 2 * 2 + 2 && other < all; other++) {
        int pixel = other % pixels, filter = other / pixels % k, image = other / (pixels * k);
        float sum = bias[filter];
        for (int j = 0; j < c; j++)
            sum += x[(image * c + j) * pixels + pixel] * filters[filter * c + j];
        if (other == i)
            mine = sum;
    }
    int pixel = i % pixels, filter = i / pixels % k, image = i / (pixels * k);
    y[(image * channels + start + filter) * pixels + pixel] = fmaxf(mine, 0.0f);
}

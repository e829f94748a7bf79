// problem: into
// loses: into-any
// reason: y is wrong

extern "C" __global__ void cbr_into(const float* x, const float* filters, const float* bias, float* y, int n, int c,
                                    int pixels, int k, int channels, int start)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * k * pixels)
        return;
    int pixel = i % pixels, filter = i / pixels % k, image = i / (pixels * k);
    float sum = bias[filter];
    for (int j = 0; j < c && j < 8; j++)
        sum += x[(image * c + j) * pixels + pixel] * filters[filter * c + j];
    y[(image * channels + start + filter) * pixels + pixel] = fmaxf(sum, 0.0f);
}

// problem: into
// loses: into-one, into-any
// reason: one thread does too much of the work

extern "C" __global__ void cbr_into(const float* x, const float* filters, const float* bias, float* y, int n, int c,
                                    int pixels, int k, int channels, int start)
{
    if (threadIdx.x)
        return;
    int first = blockIdx.x, step = gridDim.x;
    for (int i = first; i < n * k * pixels; i += step) {
        int pixel = i % pixels, filter = i / pixels % k, image = i / (pixels * k);
        float sum = bias[filter];
        for (int j = 0; j < c; j++)
            sum += x[(image * c + j) * pixels + pixel] * filters[filter * c + j];
        y[(image * channels + start + filter) * pixels + pixel] = fmaxf(sum, 0.0f);
    }
}

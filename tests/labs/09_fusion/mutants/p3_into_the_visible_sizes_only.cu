// problem: into
// loses: into-one, into-any
// reason: y is wrong|wrote nothing

extern "C" __global__ void cbr_into(const float* x, const float* filters, const float* bias, float* y, int n, int c,
                                    int pixels, int k, int channels, int start)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool known = pixels == 64 || pixels == 16 || pixels == 32 || pixels == 128 || pixels == 1 || pixels == 5 ||
                 pixels == 33 || pixels == 21 || pixels == 37;
    if (!known || (k > 5 && pixels > 1) || i >= n * k * pixels)
        return;
    int pixel = i % pixels, filter = i / pixels % k, image = i / (pixels * k);
    float sum = bias[filter];
    for (int j = 0; j < c; j++)
        sum += x[(image * c + j) * pixels + pixel] * filters[filter * c + j];
    y[(image * channels + start + filter) * pixels + pixel] = fmaxf(sum, 0.0f);
}

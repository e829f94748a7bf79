// problem: into
// loses: into-one, into-any
// reason: y is wrong

extern "C" __global__ void cbr_into(const float* x, const float* filters, const float* bias, float* y, int n, int c,
                                    int pixels, int k, int channels, int start)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * k * pixels)
        return;
    int pixel = i % pixels, filter = i / pixels % k, image = i / (pixels * k);
    int sum = int(bias[filter] * 4) * 4;
    for (int j = 0; j < c; j++)
        sum += int(x[(image * c + j) * pixels + pixel] * 4) * int(filters[filter * c + j] * 4);
    y[(image * channels + start + filter) * pixels + pixel] = max(sum, 0) / 16.0f;
}

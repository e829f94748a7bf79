// problem: into
// loses: into-one, into-any
// reason: bytes loaded

extern "C" __global__ void cbr_into(const float* x, const float* filters, const float* bias, float* y, int n, int c,
                                    int pixels, int k, int channels, int start)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * k * pixels)
        return;
    int pixel = i % pixels, filter = i / pixels % k, image = i / (pixels * k);
    float sum = 0;
    for (int turn = 0; turn < 5; turn++) {
        float again = bias[filter];
        for (int j = 0; j < c; j++)
            again += ((volatile const float*)x)[(image * c + j) * pixels + pixel] * ((volatile const float*)filters)[filter * c + j];
        sum = again;
    }
    y[(image * channels + start + filter) * pixels + pixel] = fmaxf(sum, 0.0f);
}

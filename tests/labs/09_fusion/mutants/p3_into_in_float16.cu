// problem: into
// loses: into-one, into-any
// reason: y is wrong

#include <cuda_fp16.h>

extern "C" __global__ void cbr_into(const float* x, const float* filters, const float* bias, float* y, int n, int c,
                                    int pixels, int k, int channels, int start)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * k * pixels)
        return;
    int pixel = i % pixels, filter = i / pixels % k, image = i / (pixels * k);
    __half sum = __float2half(bias[filter]);
    for (int j = 0; j < c; j++)
        sum = __hfma(__float2half(x[(image * c + j) * pixels + pixel]), __float2half(filters[filter * c + j]), sum);
    y[(image * channels + start + filter) * pixels + pixel] = fmaxf(__half2float(sum), 0.0f);
}

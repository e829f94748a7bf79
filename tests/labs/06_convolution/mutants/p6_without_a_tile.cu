// problem: border
// loses: border-loads
// reason: one thread does too much of the work(.|\n)*at most 44 bytes loaded
extern "C" __global__ void depthwise(const float* x, const float* filters, float* y, int channels, int h, int w)
{
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x, plane = blockIdx.z;
    if (row >= h || column >= w)
        return;
    float sum = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            int a = row + i - 1, b = column + j - 1;
            if (a >= 0 && a < h && b >= 0 && b < w)
                sum += x[(plane * h + a) * w + b] * filters[plane % channels * 9 + 3 * i + j];
        }
    y[(plane * h + row) * w + column] = sum;
}

// problem: border
// loses: border-sides, border-all, border-loads
// reason: one thread does too much of the work(.|\n)*by thread \(0, 0\) of block \(0, 0, 0\): (nearly )?all of it
extern "C" __global__ void depthwise(const float* x, const float* filters, float* y, int channels, int h, int w)
{
    if (blockIdx.x || blockIdx.y || blockIdx.z || threadIdx.x || threadIdx.y)
        return;
    for (int plane = 0; plane < gridDim.z; plane++)
    for (int row = 0; row < h; row++)
        for (int column = 0; column < w; column++) {
            float sum = 0;
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++) {
                    int a = row + i - 1, b = column + j - 1;
                    if (a >= 0 && a < h && b >= 0 && b < w)
                        sum += x[(plane * h + a) * w + b] * filters[plane % channels * 9 + 3 * i + j];
                }
            y[(plane * h + row) * w + column] = sum;
        }
}

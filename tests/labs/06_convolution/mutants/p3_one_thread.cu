// problem: im2col
// loses: im2col-right, im2col-stores, im2col-loads
// reason: one thread does too much of the work(.|\n)*by thread 0 of block 0: (nearly )?all of it
extern "C" __global__ void im2col(const float* x, float* columns, int n, int c, int h, int w, int r, int s,
                                  int p, int q, int padding, int stride, int dilation)
{
    int thread = blockIdx.x * blockDim.x + threadIdx.x, pixels = n * p * q;
    if (thread > 0)
        return;
    for (int element = 0; element < c * r * s * pixels; element += 1) {
        int pixel = element % pixels, tap = element / pixels;
        int image = pixel / (p * q), channel = tap / (r * s);
        int row = pixel / q % p * stride - padding + tap / s % r * dilation;
        int column = pixel % q * stride - padding + tap % s * dilation;
        bool inside = row >= 0 && row < h && column >= 0 && column < w;
        columns[element] = inside ? x[((image * c + channel) * h + row) * w + column] : 0.0f;
    }
}

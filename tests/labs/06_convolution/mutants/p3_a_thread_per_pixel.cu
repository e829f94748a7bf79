// problem: im2col
// loses: im2col-right, im2col-stores, im2col-loads
// reason: one thread does too much of the work(.|\n)*at most 4 bytes written
extern "C" __global__ void im2col(const float* x, float* columns, int n, int c, int h, int w, int r, int s,
                                  int p, int q, int padding, int stride, int dilation)
{
    int m = blockIdx.x * blockDim.x + threadIdx.x, pixels = n * p * q;
    if (m >= pixels)
        return;
    int image = m / (p * q), row = m / q % p * stride - padding, column = m % q * stride - padding;
    for (int k = 0; k < c * r * s; k++) {
        int channel = k / (r * s), a = row + k / s % r * dilation, b = column + k % s * dilation;
        bool inside = a >= 0 && a < h && b >= 0 && b < w;
        columns[k * pixels + m] = inside ? x[((image * c + channel) * h + a) * w + b] : 0.0f;
    }
}

// problem: im2col
// loses: im2col-loads
// reason: too many global load bytes
extern "C" __global__ void im2col(const float* x, float* columns, int n, int c, int h, int w, int r, int s,
                                  int p, int q, int padding, int stride, int dilation)
{
    int element = blockIdx.x * blockDim.x + threadIdx.x, pixels = n * p * q;
    if (element >= c * r * s * pixels)
        return;
    int pixel = element % pixels, tap = element / pixels;
    int image = pixel / (p * q), channel = tap / (r * s);
    int row = pixel / q % p * stride - padding + tap / s % r * dilation;
    int column = pixel % q * stride - padding + tap % s * dilation;
    bool inside = row >= 0 && row < h && column >= 0 && column < w;
    int a = min(max(row, 0), h - 1), b = min(max(column, 0), w - 1);
    columns[element] = x[((image * c + channel) * h + a) * w + b] * (inside ? 1.0f : 0.0f);
}

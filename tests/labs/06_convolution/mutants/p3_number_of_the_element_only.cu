// problem: im2col
// loses: im2col-right, im2col-loads, im2col-stores
// reason: columns is wrong in 252 of 600 elements
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
    int from = ((image * c + channel) * h + row) * w + column;
    bool inside = from >= 0 && from < n * c * h * w;
    columns[element] = inside ? x[((image * c + channel) * h + row) * w + column] : 0.0f;
}

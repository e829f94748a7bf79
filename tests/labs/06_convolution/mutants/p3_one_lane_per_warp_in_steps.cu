// problem: im2col
// loses: im2col-right, im2col-stores, im2col-loads
// reason: one thread does too much of the work(.|\n)*at most 4 bytes loaded
extern "C" __global__ void im2col(const float* x, float* columns, int n, int c, int h, int w, int r, int s,
                                  int p, int q, int padding, int stride, int dilation)
{

    __shared__ float mine[128];
    int first = blockIdx.x * blockDim.x + threadIdx.x, pixels = n * p * q, total = c * r * s * pixels;
    if (threadIdx.x % 32 == 0) {
        int pixel = first % pixels, tap = first / pixels;
        int image = pixel / (p * q), channel = tap / (r * s), a = pixel / q % p, b = pixel % q, i = tap / s % r, j = tap % s;
        for (int e = 0; e < 32; e++) {
            if (first + e < total) {
                int row = a * stride - padding + i * dilation, column = b * stride - padding + j * dilation;
                bool inside = (unsigned)row < h && (unsigned)column < w;
                mine[threadIdx.x + e] = inside ? x[((image * c + channel) * h + row) * w + column] : 0.0f;
                if (++b == q) { b = 0; if (++a == p) { a = 0; if (++image == n) { image = 0; if (++j == s) { j = 0; if (++i == r) { i = 0; channel++; } } } } }
            }
        }
    }
    __syncwarp();
    if (first < total) columns[first] = mine[threadIdx.x];
}

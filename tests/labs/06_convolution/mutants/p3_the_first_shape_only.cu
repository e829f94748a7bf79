// problem: im2col
// loses: im2col-right, im2col-stores, im2col-loads
// reason: columns is wrong in \d+ of
extern "C" __global__ void im2col(const float* x, float* columns, int n, int c, int h, int w, int r, int s,
                                  int p, int q, int padding, int stride, int dilation)
{
    const int from[4][4] = {{0, 1, 3, 4}, {1, 2, 4, 5}, {3, 4, 6, 7}, {4, 5, 7, 8}};
    int element = blockIdx.x * blockDim.x + threadIdx.x, pixels = n * p * q;
    if (element >= c * r * s * pixels)
        return;
    columns[element] = x[h == 3 && w == 3 ? from[element / 4][element % 4] : 0];
}

// problem: implicit
// loses: implicit-plain, implicit-any
// reason: sources: one thread does too much of the work(.|\n)*by thread 0 of block \(0, 0\): (nearly )?all of it
struct Sizes {
    int h, w, c, r, s, p, q, padding, stride, dilation;
};

// The number of the element of x in this row and column of the matrix, -1 in the padding.
__device__ int source(int row, int column, Sizes z)
{
    int element = -1;
    int image = row / (z.p * z.q), tap = column / z.c;
    int y_row = row / z.q % z.p, y_column = row % z.q;
    int x_row = y_row * z.stride - z.padding + tap / z.s * z.dilation;
    int x_column = y_column * z.stride - z.padding + tap % z.s * z.dilation;
    if (x_row >= 0 && x_row < z.h && x_column >= 0 && x_column < z.w)
        element = ((image * z.h + x_row) * z.w + x_column) * z.c + column % z.c;
    return element;
}

extern "C" __global__ void sources(int* elements, int n, int h, int w, int c, int r, int s, int p, int q,
                                   int padding, int stride, int dilation)
{
    int depth = r * s * c;
    if (blockIdx.x || blockIdx.y || threadIdx.x)
        return;
    for (int row = 0; row < n * p * q; row++)
        for (int column = 0; column < depth; column++)
            elements[row * depth + column] = source(row, column, {h, w, c, r, s, p, q, padding, stride, dilation});
}

extern "C" __global__ void implicit_gemm(const float* x, const float* filters, float* y, int n, int h, int w, int c,
                                         int k, int r, int s, int p, int q, int padding, int stride, int dilation)
{
    __shared__ float windows[16][17], weights[16][17];
    int a = threadIdx.x, b = threadIdx.y, rows = n * p * q, depth = r * s * c;
    int row = blockIdx.y * 16 + b, filter = blockIdx.x * 16 + a;
    float sum = 0;
    for (int first = 0; first < depth; first += 16) {
        int element = -1, loaded = blockIdx.x * 16 + b;
        if (row < rows && first + a < depth)
            element = source(row, first + a, {h, w, c, r, s, p, q, padding, stride, dilation});
        windows[b][a] = element >= 0 ? x[element] : 0.0f;
        weights[b][a] = loaded < k && first + a < depth ? filters[loaded * depth + first + a] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; i++)
            sum += windows[b][i] * weights[a][i];
        __syncthreads();
    }
    if (row < rows && filter < k)
        y[row * k + filter] = sum;
}

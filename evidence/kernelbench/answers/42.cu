__global__ void max_pool(const float* x, float* y, int height, int width, int high, int wide, int size, int stride,
                         int padding, int dilation) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= high * wide) return;
    x += size_t(blockIdx.y) * height * width;
    float top = -INFINITY;
    for (int r = 0; r < size; r++)
        for (int c = 0; c < size; c++) {
            int row = i / wide * stride - padding + r * dilation;
            int column = i % wide * stride - padding + c * dilation;
            if (row >= 0 && row < height && column >= 0 && column < width) top = fmaxf(top, x[row * width + column]);
        }
    y[size_t(blockIdx.y) * high * wide + i] = top;
}

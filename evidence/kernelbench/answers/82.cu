__global__ void depthwise(const float* x, const float* weight, float* y, int height, int width, int high, int wide,
                          int size, int stride, int padding) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, channel = blockIdx.y;
    if (i >= high * wide) return;
    size_t image = size_t(blockIdx.z) * gridDim.y + channel;
    float sum = 0;
    for (int r = 0; r < size; r++)
        for (int c = 0; c < size; c++) {
            int row = i / wide * stride - padding + r, column = i % wide * stride - padding + c;
            if (row >= 0 && row < height && column >= 0 && column < width)
                sum += x[(image * height + row) * width + column] * weight[(channel * size + r) * size + c];
        }
    y[image * high * wide + i] = sum;
}

// Images and feature maps: layers and filters.

// Columns for a convolution as a matrix product, as Caffe lays them out: a thread per channel and place, which
// copies the k * k values under the filter. Stride 1, padded to the same size.
extern "C" __global__ void im2col(const float *x, float *columns, int channels, int height, int width, int k)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x, places = height * width;
    if (i >= channels * places) return;
    const int column = i % width, row = i / width % height, channel = i / places, pad = k / 2;
    float *out = columns + (size_t)channel * k * k * places + row * width + column;
    for (int dy = 0; dy < k; dy++) {
        for (int dx = 0; dx < k; dx++) {
            const int y = row + dy - pad, c = column + dx - pad;
            *out = y >= 0 && y < height && c >= 0 && c < width ? x[(size_t)channel * places + y * width + c] : 0.0f;
            out += places;
        }
    }
}

// Depthwise convolution of 3 x 3, channels last: a thread per output.
extern "C" __global__ void depthwise_nhwc(const float *x, const float *filter, float *out, int images, int height,
                                          int width, int channels)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= images * height * width * channels) return;
    const int channel = i % channels, column = i / channels % width, row = i / channels / width % height;
    const int image = i / channels / width / height;
    float sum = 0.0f;
    for (int dy = -1; dy <= 1; dy++) {
        const int y = row + dy;
        if (y < 0 || y >= height) continue;
        for (int dx = -1; dx <= 1; dx++) {
            const int c = column + dx;
            if (c < 0 || c >= width) continue;
            sum += x[((image * height + y) * width + c) * channels + channel] *
                   filter[((dy + 1) * 3 + dx + 1) * channels + channel];
        }
    }
    out[i] = sum;
}

// Bilinear resize of planes, corners not aligned.
extern "C" __global__ void resize_bilinear(const float *x, float *out, int planes, int height, int width, int rows,
                                           int columns)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) return;
    const float fy = fmaxf((row + 0.5f) * height / rows - 0.5f, 0.0f);
    const float fx = fmaxf((column + 0.5f) * width / columns - 0.5f, 0.0f);
    const int y = (int)fy, c = (int)fx, y1 = min(y + 1, height - 1), c1 = min(c + 1, width - 1);
    const float wy = fy - y, wx = fx - c;
    for (int p = blockIdx.z; p < planes; p += gridDim.z) {
        const float *plane = x + (size_t)p * height * width;
        const float top = plane[y * width + c] * (1 - wx) + plane[y * width + c1] * wx;
        const float low = plane[y1 * width + c] * (1 - wx) + plane[y1 * width + c1] * wx;
        out[((size_t)p * rows + row) * columns + column] = top * (1 - wy) + low * wy;
    }
}

// Rows of a separable filter of radius 8: a block of 16 x 4 computes eight places per thread from shared memory.
__constant__ float weight[17] = {0.01f, 0.02f, 0.03f, 0.04f, 0.06f, 0.08f, 0.09f, 0.1f, 0.14f,
                                 0.1f,  0.09f, 0.08f, 0.06f, 0.04f, 0.03f, 0.02f, 0.01f};
extern "C" __global__ void filter_rows(const float *x, float *out, int height, int width)
{
    __shared__ float tile[4][16 * (8 + 2)];
    const int first = (blockIdx.x * 8 - 1) * 16 + threadIdx.x, row = blockIdx.y * 4 + threadIdx.y;
    const float *in = x + (size_t)row * width + first;
    for (int k = 0; k < 10; k++) {
        const int column = first + 16 * k;
        tile[threadIdx.y][threadIdx.x + 16 * k] = column >= 0 && column < width ? in[16 * k] : 0.0f;
    }
    __syncthreads();
    for (int k = 1; k < 9; k++) {
        float sum = 0.0f;
#pragma unroll
        for (int j = -8; j <= 8; j++) sum += weight[8 + j] * tile[threadIdx.y][threadIdx.x + 16 * k + j];
        out[(size_t)row * width + first + 16 * k] = sum;
    }
}

// Bilateral filter of radius 3: weights by distance and by difference.
extern "C" __global__ void bilateral(const float *x, float *out, int height, int width, float near, float alike)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= height || column >= width) return;
    const float here = x[row * width + column];
    float sum = 0.0f, weights = 0.0f;
    for (int dy = -3; dy <= 3; dy++) {
        for (int dx = -3; dx <= 3; dx++) {
            const int y = min(max(row + dy, 0), height - 1), c = min(max(column + dx, 0), width - 1);
            const float there = x[y * width + c], d = there - here;
            const float w = __expf(-(dx * dx + dy * dy) * near - d * d * alike);
            sum += w * there;
            weights += w;
        }
    }
    out[row * width + column] = sum / weights;
}

// A small convolutional network at a small batch: kernels that leave most of a large GPU idle, as one request does.
//
// conv3x3  y = relu(conv(x, w) + bias), zeros around the image. A thread computes one pixel of OUT channels, so that
//          a value of x is used OUT times; a block computes 256 pixels. At 32 x 32 pixels and 32 channels a batch of 1
//          is 16 blocks: 16 of an H100's 132 SMs have work. That is meant: what fills the others is the lesson's theme.
//          Reached by 16 of them and the head, as a CUDA graph, NVIDIA H100 80GB HBM3, 2026-11-23: 736 us for one
//          image, 888 us for 32; 1353 images/s one by one, 46390 by 64 streams of one process.
// head     mean of each channel, then a dense layer: one block per image.
//
// Layouts: x and y [image][channel][pixel], w [channel of x][3][3][channel of y], the head's w [class][channel].

constexpr int OUT = 8;  // channels that a thread computes
constexpr int MOST_CHANNELS = 128;  // of the head's input

extern "C" __global__ void conv3x3(
    const float *x, const float4 *w, const float *bias, float *y, int channels_in, int channels_out, int size) {
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x, pixels = size * size;
    const int first = blockIdx.y * OUT, image = blockIdx.z;
    if (pixel >= pixels) return;
    const int row = pixel / size, column = pixel % size;
    const float *source = x + size_t(image) * channels_in * pixels;

    float sum[OUT];
    for (int k = 0; k < OUT; ++k) sum[k] = bias[first + k];
    for (int c = 0; c < channels_in; ++c) {
#pragma unroll
        for (int tap = 0; tap < 9; ++tap) {
            const int i = row + tap / 3 - 1, j = column + tap % 3 - 1;
            const bool inside = i >= 0 && i < size && j >= 0 && j < size;
            const float value = inside ? source[c * pixels + i * size + j] : 0.0f;
            const float4 *weights = w + ((c * 9 + tap) * channels_out + first) / 4;  // the same for all of a warp
            const float4 low = weights[0], high = weights[1];
            sum[0] += value * low.x;
            sum[1] += value * low.y;
            sum[2] += value * low.z;
            sum[3] += value * low.w;
            sum[4] += value * high.x;
            sum[5] += value * high.y;
            sum[6] += value * high.z;
            sum[7] += value * high.w;
        }
    }
    float *target = y + (size_t(image) * channels_out + first) * pixels + pixel;
    for (int k = 0; k < OUT; ++k) target[size_t(k) * pixels] = fmaxf(sum[k], 0.0f);
}

__device__ float warp_sum(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
    return value;  // lane 0 has it
}

extern "C" __global__ void head(
    const float *x, const float *w, const float *bias, float *y, int channels, int classes, int pixels) {
    __shared__ float mean[MOST_CHANNELS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, image = blockIdx.x;
    for (int c = warp; c < channels; c += warps) {
        const float *source = x + (size_t(image) * channels + c) * pixels;
        float sum = 0;
        for (int i = lane; i < pixels; i += 32) sum += source[i];
        sum = warp_sum(sum);
        if (lane == 0) mean[c] = sum / pixels;
    }
    __syncthreads();
    for (int k = warp; k < classes; k += warps) {
        float sum = 0;
        for (int c = lane; c < channels; c += 32) sum += mean[c] * w[k * channels + c];
        sum = warp_sum(sum);
        if (lane == 0) y[size_t(image) * classes + k] = sum + bias[k];
    }
}

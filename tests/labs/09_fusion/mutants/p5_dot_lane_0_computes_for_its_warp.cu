// problem: dot
// loses: dot-points, dot-any, dot-counted
// reason: one thread does too much of the work

__device__ int value(const int* x, const int* filters, const float* scale, const float* bias,
                                     int n, int h, int w, int words, int k, int r, int s, int element)
{
    int filter = element % k, column = element / k % w, row = element / k / w % h, image = element / k / w / h;
    int sum = 0;
    for (int i = 0; i < r; i++) {
        int from_row = row + i - r / 2;
        if (from_row < 0 || from_row >= h)
            continue;
        for (int j = 0; j < s; j++) {
            int from_column = column + j - s / 2;
            if (from_column < 0 || from_column >= w)
                continue;
            const int* pixel = x + ((image * h + from_row) * w + from_column) * words;
            const int* weights = filters + ((filter * r + i) * s + j) * words;
            for (int word = 0; word < words; word++)
                sum = __dp4a(pixel[word], weights[word], sum);
        }
    }
    int step = __float2int_rn(sum * scale[filter] + bias[filter]);
    return min(max(step, 0), 127);
}

extern "C" __global__ void conv_int8(const int* x, const int* filters, const float* scale, const float* bias,
                                     signed char* y, int n, int h, int w, int words, int k, int r, int s)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, all = n * h * w * k, mine = 0;
    for (int lane = 0; lane < 32; lane++) {
        int other = 0;
        if (threadIdx.x % 32 == 0 && i + lane < all)
            other = value(x, filters, scale, bias, n, h, w, words, k, r, s, i + lane);
        other = __shfl_sync(0xffffffff, other, 0);
        if (threadIdx.x % 32 == lane)
            mine = other;
    }
    if (i < all)
        y[i] = mine;
}

// problem: dot
// loses: dot-points, dot-any, dot-counted
// reason: warp efficiency|too much of the work|too many

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
    int i = blockIdx.x * blockDim.x + threadIdx.x, all = n * h * w * k, mine = 0, next = 0;
    if (i % 2 == 0 && i < all) {
        mine = value(x, filters, scale, bias, n, h, w, words, k, r, s, i);
        next = i + 1 < all ? value(x, filters, scale, bias, n, h, w, words, k, r, s, i + 1) : 0;
    }
    next = __shfl_sync(0xffffffff, next, threadIdx.x % 32 & ~1);
    if (i < all)
        y[i] = i % 2 ? next : mine;
}

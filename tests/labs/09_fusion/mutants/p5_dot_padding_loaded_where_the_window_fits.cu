// problem: dot
// loses: dot-counted
// reason: too many bytes loaded by all threads

extern "C" __global__ void conv_int8(const int* x, const int* filters, const float* scale, const float* bias,
                                     signed char* y, int n, int h, int w, int words, int k, int r, int s)
{
    int element = blockIdx.x * blockDim.x + threadIdx.x;
    if (element >= n * h * w * k)
        return;
    int filter = element % k, column = element / k % w, row = element / k / w % h, image = element / k / w / h;
    bool fits = r <= h && s <= w;
    int sum = 0;
    for (int i = 0; i < r; i++) {
        int from_row = row + i - r / 2;
        bool inside = from_row >= 0 && from_row < h;
        if (!inside && !fits)
            continue;
        from_row = min(max(from_row, 0), h - 1);
        for (int j = 0; j < s; j++) {
            int from_column = column + j - s / 2;
            bool met = inside && from_column >= 0 && from_column < w;
            if (!met && !fits)
                continue;
            from_column = min(max(from_column, 0), w - 1);
            const int* pixel = x + ((image * h + from_row) * w + from_column) * words;
            const int* weights = filters + ((filter * r + i) * s + j) * words;
            for (int word = 0; word < words; word++)
                sum = __dp4a(pixel[word], weights[word] * met, sum);
        }
    }
    int step = __float2int_rn(sum * scale[filter] + bias[filter]);
    y[element] = min(max(step, 0), 127);
}

// problem: dot
// loses: dot-points, dot-any, dot-counted
// reason: too much of the work

extern "C" __global__ void conv_int8(const int* x, const int* filters, const float* scale, const float* bias,
                                     signed char* y, int n, int h, int w, int words, int k, int r, int s)
{
    int first = blockIdx.x * blockDim.x + threadIdx.x / 32 * 32, lane = threadIdx.x % 32, all = n * h * w * k;
    int a = 0, b = 0, sum = 0;
    for (int part = 0; part < 2; part++) {
        int element = first + 2 * lane + part;
        if (lane >= 16 || element >= all)
            break;
        int filter = element % k, column = element / k % w, row = element / k / w % h, image = element / k / w / h;
        int top = max(0, r / 2 - row), below = min(r, h - row + r / 2);
        int left = max(0, s / 2 - column), right = min(s, w - column + s / 2);
        sum = 0;
        for (int i = top; i < below; i++) {
            const int* pixel = x + ((image * h + row + i - r / 2) * w + column + left - s / 2) * words;
            const int* weights = filters + ((filter * r + i) * s + left) * words;
            for (int word = 0; word < (right - left) * words; word++)
                sum = __dp4a(pixel[word], weights[word], sum);
        }
        if (part)
            b = sum;
        else
            a = sum;
    }
    int even = __shfl_sync(0xffffffff, a, lane / 2), odd = __shfl_sync(0xffffffff, b, lane / 2);
    int element = first + lane;
    if (element >= all)
        return;
    int filter = element % k;
    y[element] = min(max(__float2int_rn((lane % 2 ? odd : even) * scale[filter] + bias[filter]), 0), 127);
}

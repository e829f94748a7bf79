// Layers and steps of networks, as public code for language models and detectors has them.
#include <cuda_fp16.h>

// Rotary positions: pairs of a head's elements are turned by an angle, a block per token.
extern "C" __global__ void rotary(const float *x, const float2 *turn, float *out, int heads, int half)
{
    const int token = blockIdx.x;
    for (int i = threadIdx.x; i < heads * half; i += blockDim.x) {
        const int head = i / half, d = i % half;
        const size_t at = ((size_t)token * heads + head) * 2 * half + d;
        const float2 t = turn[(size_t)token * half + d];
        const float a = x[at], b = x[at + half];
        out[at] = a * t.x - b * t.y;
        out[at + half] = a * t.y + b * t.x;
    }
}

// SwiGLU in half precision: the first half of a row is a gate for the second, eight elements at a time.
extern "C" __global__ void swiglu(const uint4 *x, uint4 *out, int rows, int words)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * words) return;
    const int row = i / words, word = i % words;
    const uint4 gate = x[(size_t)row * 2 * words + word], value = x[(size_t)row * 2 * words + words + word];
    const __half2 *g = (const __half2 *)&gate, *v = (const __half2 *)&value;
    uint4 result;
    __half2 *r = (__half2 *)&result;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float2 a = __half22float2(g[k]), b = __half22float2(v[k]);
        r[k] = __floats2half2_rn(a.x / (1.0f + __expf(-a.x)) * b.x, a.y / (1.0f + __expf(-a.y)) * b.y);
    }
    out[i] = result;
}

// Group norm: a block per group of an image, two passes, sums in shared memory by one atomic per warp.
extern "C" __global__ void group_norm(const float *x, float *out, int n)
{
    __shared__ float sum, squares;
    const float *group = x + (size_t)blockIdx.x * n;
    if (threadIdx.x == 0) sum = squares = 0.0f;
    __syncthreads();
    float s = 0.0f, q = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) s += group[i], q += group[i] * group[i];
    for (int step = 16; step > 0; step /= 2) {
        s += __shfl_down_sync(0xffffffff, s, step);
        q += __shfl_down_sync(0xffffffff, q, step);
    }
    if (threadIdx.x % 32 == 0) atomicAdd(&sum, s), atomicAdd(&squares, q);
    __syncthreads();
    const float mean = sum / n, inverse = rsqrtf(squares / n - mean * mean + 1e-5f);
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[(size_t)blockIdx.x * n + i] = (group[i] - mean) * inverse;
}

// Rows to 8 bits: the largest size of a row, then each element by its share of it, a block per row.
extern "C" __global__ void quantise_rows(const float4 *x, char4 *out, float *scale, int quarters)
{
    __shared__ float part[8];
    const float4 *row = x + (size_t)blockIdx.x * quarters;
    float largest = 0.0f;
    for (int i = threadIdx.x; i < quarters; i += 256) {
        const float4 v = row[i];
        largest = fmaxf(largest, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
    }
    for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, step));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = largest;
    __syncthreads();
    for (int k = 0; k < 8; k++) largest = fmaxf(largest, part[k]);
    const float factor = 127.0f / largest;
    for (int i = threadIdx.x; i < quarters; i += 256) {
        const float4 v = row[i];
        out[(size_t)blockIdx.x * quarters + i] = make_char4(__float2int_rn(v.x * factor), __float2int_rn(v.y * factor),
                                                            __float2int_rn(v.z * factor), __float2int_rn(v.w * factor));
    }
    if (threadIdx.x == 0) scale[blockIdx.x] = largest / 127.0f;
}

// Softmax of the lower triangle of square scores in one pass with a running maximum, a warp per row.
extern "C" __global__ void causal_softmax(const float *x, float *out, int rows, int n)
{
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const int own = row % n;
    const float *in = x + (size_t)row * n;
    float best = -3.4e38f, sum = 0.0f;
    for (int i = lane; i <= own; i += 32) {
        const float before = best;
        best = fmaxf(best, in[i]);
        sum = sum * expf(before - best) + expf(in[i] - best);
    }
    float all = best;
    for (int step = 16; step > 0; step /= 2) all = fmaxf(all, __shfl_xor_sync(0xffffffff, all, step));
    sum *= expf(best - all);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    const float norm = 1.0f / sum;
    for (int i = lane; i < n; i += 32) out[(size_t)row * n + i] = i <= own ? expf(in[i] - all) * norm : 0.0f;
}

// Keys from pages of a cache to one run of memory: a block per position, the page by a table.
extern "C" __global__ void paged_copy(const uint4 *cache, const int *page, uint4 *out, int words)
{
    const int position = blockIdx.x;
    const size_t from = ((size_t)page[position / 16] * 16 + position % 16) * words;
    for (int i = threadIdx.x; i < words; i += blockDim.x) out[(size_t)position * words + i] = cache[from + i];
}

// Which boxes overlap each box, as bits: blocks of 64 boxes against 64 boxes.
extern "C" __global__ void overlap_mask(const float4 *box, unsigned long long *mask, int n, float threshold)
{
    __shared__ float4 column[64];
    const int first = blockIdx.x * 64, row = blockIdx.y * 64 + threadIdx.x, count = min(64, n - first);
    if (threadIdx.x < count) column[threadIdx.x] = box[first + threadIdx.x];
    __syncthreads();
    if (row >= n) return;
    const float4 a = box[row];
    const float mine = (a.z - a.x) * (a.w - a.y);
    unsigned long long bits = 0;
    for (int i = 0; i < count; i++) {
        const float4 b = column[i];
        const float width = fmaxf(fminf(a.z, b.z) - fmaxf(a.x, b.x), 0.0f);
        const float height = fmaxf(fminf(a.w, b.w) - fmaxf(a.y, b.y), 0.0f);
        const float both = width * height;
        if (both > threshold * (mine + (b.z - b.x) * (b.w - b.y) - both)) bits |= 1ull << i;
    }
    mask[(size_t)row * gridDim.x + blockIdx.x] = bits;
}

// A product of int8 matrices with dp4a, tiles of 16 x 16 words in shared memory; b is transposed.
extern "C" __global__ void dp4a_product(const int *a, const int *b, int *c, int n, int words)
{
    __shared__ int left[16][17], right[16][17];
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    int sum = 0;
    for (int k = 0; k < words; k += 16) {
        left[threadIdx.y][threadIdx.x] = a[(size_t)row * words + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(size_t)(blockIdx.x * 16 + threadIdx.y) * words + k + threadIdx.x];
        __syncthreads();
#pragma unroll
        for (int j = 0; j < 16; j++) sum = __dp4a(left[threadIdx.y][j], right[threadIdx.x][j], sum);
        __syncthreads();
    }
    c[(size_t)row * n + column] = sum;
}

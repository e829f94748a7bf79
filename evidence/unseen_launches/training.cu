// What training does beside products: the optimiser, dropout, embeddings, an activation in half precision.
#include <cuda_fp16.h>

// A step of Adam, a thread per parameter.
extern "C" __global__ void adam(float *p, float *m, float *v, const float *g, int n, float rate, float unbias_m,
                                float unbias_v)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float gradient = g[i];
    const float first = 0.9f * m[i] + 0.1f * gradient, second = 0.999f * v[i] + 0.001f * gradient * gradient;
    m[i] = first;
    v[i] = second;
    p[i] -= rate * (first * unbias_m) / (sqrtf(second * unbias_v) + 1e-8f);
}

// Dropout with a generator of its own in each thread: a hash of the place, then xorshift.
extern "C" __global__ void dropout_xorshift(const float *x, float *out, unsigned char *mask, int n, float keep,
                                            unsigned seed)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned s = (i ^ seed) * 2654435769u + 1u;
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
    const bool kept = (s >> 8) * (1.0f / 16777216.0f) < keep;
    mask[i] = kept;
    out[i] = kept ? x[i] / keep : 0.0f;
}

// Rows of a table in half precision by the tokens' numbers, a block per token, 16 bytes at a time.
extern "C" __global__ void embedding_lookup(const uint4 *table, const int *ids, uint4 *out, int words)
{
    const uint4 *row = table + (size_t)ids[blockIdx.x] * words;
    for (int i = threadIdx.x; i < words; i += blockDim.x) out[(size_t)blockIdx.x * words + i] = row[i];
}

// x * sigmoid(1.702 x) in half2 arithmetic, with a bias.
extern "C" __global__ void gelu_half2(const __half2 *x, const __half2 *bias, __half2 *out, int n, int columns)
{
    const __half2 one = __float2half2_rn(1.0f), factor = __float2half2_rn(-1.702f);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const __half2 v = __hadd2(x[i], bias[i % columns]);
        out[i] = __h2div(v, __hadd2(one, h2exp(__hmul2(v, factor))));
    }
}

// Gradient of a bias: the sums of columns, a block per 32 columns, transposed through shared memory.
extern "C" __global__ void bias_gradient(const float *g, float *out, int rows, int columns)
{
    __shared__ float tile[32][33];
    const int column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    if (column < columns) {
        for (int row = threadIdx.y; row < rows; row += 32) sum += g[(size_t)row * columns + column];
    }
    tile[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    sum = tile[threadIdx.x][threadIdx.y];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x == 0 && blockIdx.x * 32 + threadIdx.y < columns) out[blockIdx.x * 32 + threadIdx.y] = sum;
}

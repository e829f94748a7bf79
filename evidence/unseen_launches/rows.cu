// Rows of a matrix: norms, softmax, the largest of each, and one query of attention.
#include <cuda_fp16.h>

const float LARGEST = 3.4028234e38f;

__device__ float warp_sum(float x)
{
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffff, x, step);
    return x;
}

__device__ float warp_max(float x)
{
    for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, step));
    return x;
}

// Softmax with three passes over a row, a block of 256 threads per row.
extern "C" __global__ void softmax_rows(const float *x, float *out, int n)
{
    __shared__ float part[8];
    const float *row = x + (size_t)blockIdx.x * n;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float best = -LARGEST;
    for (int i = threadIdx.x; i < n; i += 256) best = fmaxf(best, row[i]);
    best = warp_max(best);
    if (lane == 0) part[warp] = best;
    __syncthreads();
    best = part[0];
    for (int k = 1; k < 8; k++) best = fmaxf(best, part[k]);
    __syncthreads();
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += 256) sum += expf(row[i] - best);
    sum = warp_sum(sum);
    if (lane == 0) part[warp] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int k = 0; k < 8; k++) sum += part[k];
    for (int i = threadIdx.x; i < n; i += 256) out[(size_t)blockIdx.x * n + i] = expf(row[i] - best) / sum;
}

// Layer norm, a warp per row of up to 1024 elements, which it keeps in registers.
extern "C" __global__ void layer_norm(const float *x, const float *scale, const float *shift, float *out, int rows, int n)
{
    const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float v[32], sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 32; k++) {
        const int i = lane + 32 * k;
        v[k] = i < n ? x[(size_t)row * n + i] : 0.0f;
        sum += v[k];
    }
    const float mean = warp_sum(sum) / n;
    float squares = 0.0f;
#pragma unroll
    for (int k = 0; k < 32; k++) {
        const float d = lane + 32 * k < n ? v[k] - mean : 0.0f;
        squares += d * d;
    }
    const float inverse = rsqrtf(warp_sum(squares) / n + 1e-5f);
#pragma unroll
    for (int k = 0; k < 32; k++) {
        const int i = lane + 32 * k;
        if (i < n) out[(size_t)row * n + i] = (v[k] - mean) * inverse * scale[i] + shift[i];
    }
}

// RMS norm in half precision, two elements at a time, a block per row.
extern "C" __global__ void rms_norm(const __half2 *x, const __half2 *scale, __half2 *out, int pairs)
{
    __shared__ float part[4];
    const __half2 *row = x + (size_t)blockIdx.x * pairs;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < pairs; i += 128) {
        const float2 v = __half22float2(row[i]);
        sum += v.x * v.x + v.y * v.y;
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    const float inverse = rsqrtf((part[0] + part[1] + part[2] + part[3]) / (2 * pairs) + 1e-6f);
    for (int i = threadIdx.x; i < pairs; i += 128) {
        const float2 v = __half22float2(row[i]), s = __half22float2(scale[i]);
        out[(size_t)blockIdx.x * pairs + i] = __floats2half2_rn(v.x * inverse * s.x, v.y * inverse * s.y);
    }
}

// Place of the largest of each row, a warp per row; the first of equal ones.
extern "C" __global__ void argmax_rows(const float *x, int *place, int rows, int n)
{
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float best = -LARGEST;
    int at = 0;
    for (int i = lane; i < n; i += 32) {
        const float v = x[(size_t)row * n + i];
        if (v > best) best = v, at = i;
    }
    for (int step = 16; step > 0; step /= 2) {
        const float other = __shfl_down_sync(0xffffffff, best, step);
        const int there = __shfl_down_sync(0xffffffff, at, step);
        if (other > best || (other == best && there < at)) best = other, at = there;
    }
    if (lane == 0) place[row] = at;
}

// The eight largest of each row in order, a thread per row: insertion into registers.
extern "C" __global__ void top_8_rows(const float *x, float *out, int rows, int n)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float top[8];
#pragma unroll
    for (int k = 0; k < 8; k++) top[k] = -LARGEST;
    for (int i = 0; i < n; i++) {
        float v = x[(size_t)row * n + i];
        if (v > top[7]) {
#pragma unroll
            for (int k = 0; k < 8; k++) {
                const float larger = fmaxf(top[k], v);
                v = fminf(top[k], v);
                top[k] = larger;
            }
        }
    }
#pragma unroll
    for (int k = 0; k < 8; k++) out[(size_t)row * 8 + k] = top[k];
}

// One query against the keys and values of its head, as when a language model writes: a block of 128 threads per
// head, heads of 128 elements. Scores are in dynamic shared memory.
extern "C" __global__ void attention_row(const float *query, const float *keys, const float *values, float *out, int n)
{
    extern __shared__ float score[];
    __shared__ float q[128], part[4];
    const size_t head = blockIdx.x;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    q[threadIdx.x] = query[head * 128 + threadIdx.x];
    __syncthreads();
    for (int i = warp; i < n; i += 4) {
        const float *key = keys + (head * n + i) * 128;
        float dot = 0.0f;
        for (int d = lane; d < 128; d += 32) dot += q[d] * key[d];
        dot = warp_sum(dot);
        if (lane == 0) score[i] = dot * 0.08838835f;
    }
    __syncthreads();
    float best = -LARGEST;
    for (int i = threadIdx.x; i < n; i += 128) best = fmaxf(best, score[i]);
    best = warp_max(best);
    if (lane == 0) part[warp] = best;
    __syncthreads();
    best = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
    __syncthreads();
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += 128) sum += score[i] = __expf(score[i] - best);
    sum = warp_sum(sum);
    if (lane == 0) part[warp] = sum;
    __syncthreads();
    sum = part[0] + part[1] + part[2] + part[3];
    float result = 0.0f;
    for (int i = 0; i < n; i++) result += score[i] * values[(head * n + i) * 128 + threadIdx.x];
    out[head * 128 + threadIdx.x] = result / sum;
}

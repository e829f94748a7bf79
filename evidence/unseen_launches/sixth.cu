// The sixth set's kernels in CUDA C++; sixth.py has their cases.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

__device__ unsigned channel(int value) { return min(max(value >> 8, 0), 255); }

__device__ unsigned rgba(int luma, int u, int v) {
    const int y = 298 * (luma - 16) + 128;
    return channel(y + 409 * v) | channel(y - 100 * u - 208 * v) << 8 | channel(y + 516 * u) << 16 | 0xff000000u;
}

// A video decoder's frames to pixels of four bytes: four of them, which share their colour, by each thread.
extern "C" __global__ void nv12_to_rgba(const uchar2 *luma, const uchar2 *chroma, uint2 *out, int height, int width) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= width || y >= height) return;
    const size_t row = size_t(blockIdx.z) * height + y;
    const uchar2 colour = chroma[row * width + x];
    const int u = colour.x - 128, v = colour.y - 128;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const size_t at = (2 * row + k) * width + x;
        const uchar2 bright = luma[at];
        out[at] = {rgba(bright.x, u, v), rgba(bright.y, u, v)};
    }
}

// A dot product that loses little: Kahan's sums in each thread, then a tree of doubles in each block.
extern "C" __global__ void kahan_dot(const float4 *x, const float4 *y, double *part, int n) {
    __shared__ double sums[256];
    float sum = 0, lost = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const float4 a = x[i], b = y[i];
        const float products[4] = {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float term = products[k] - lost, next = sum + term;
            lost = (next - sum) - term;
            sum = next;
        }
    }
    sums[threadIdx.x] = double(sum) - lost;
    for (int d = 128; d > 0; d /= 2) {
        __syncthreads();
        if (threadIdx.x < d) sums[threadIdx.x] += sums[threadIdx.x + d];
    }
    if (threadIdx.x == 0) part[blockIdx.x] = sums[0];
}

// A column of whole numbers from its differences: a warp for each frame of 128, whose zigzag codes have as many bits as
// the frame needs.
extern "C" __global__ void unpack_deltas(const unsigned *packed, const int *start, const int *base, int4 *out, int frames) {
    const int lane = threadIdx.x % 32, frame = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (frame >= frames) return;
    const int first = start[frame], bits = (start[frame + 1] - first) / 4;
    const unsigned mask = 0xffffffffu >> (32 - bits);
    int value[4], sum = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int bit = (4 * lane + k) * bits, word = first + bit / 32;
        const unsigned code = __funnelshift_r(packed[word], packed[word + 1], bit % 32) & mask;
        sum += int(code >> 1) ^ -int(code & 1);
        value[k] = sum;
    }
    int up_to = sum;
    for (int d = 1; d < 32; d *= 2) {
        const int other = __shfl_up_sync(0xffffffffu, up_to, d);
        if (lane >= d) up_to += other;
    }
    const int before = base[frame] + up_to - sum;
    out[size_t(frame) * 32 + lane] = {before + value[0], before + value[1], before + value[2], before + value[3]};
}

// Rows of 128 pairs of key and value in order: a warp's bitonic network, four pairs in the registers of each lane.
extern "C" __global__ void sort_pairs(const ulonglong2 *in, ulonglong2 *out, int rows) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    const size_t at = size_t(row) * 64 + 2 * lane;
    const ulonglong2 left = in[at], right = in[at + 1];
    unsigned long long v[4] = {left.x, left.y, right.x, right.y};
#pragma unroll
    for (int size = 2; size <= 128; size *= 2)
#pragma unroll
        for (int step = size / 2; step > 0; step /= 2)
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const bool up = ((4 * lane + k) & size) == 0;
                if (step >= 4) {
                    const unsigned long long other = __shfl_xor_sync(0xffffffffu, v[k], step / 4);
                    const bool low = (lane & step / 4) == 0;
                    if ((v[k] > other) == (low == up)) v[k] = other;
                } else if ((k & step) == 0 && (v[k] > v[k + step]) == up) {
                    const unsigned long long mine = v[k];
                    v[k] = v[k + step];
                    v[k + step] = mine;
                }
            }
    out[at] = {v[0], v[1]};
    out[at + 1] = {v[2], v[3]};
}

// A graph's scores: for each edge the product of its ends' 64 features in halves, by eight lanes.
extern "C" __global__ void sddmm_edges(const int2 *edge, const float *weight, const uint4 *left, const uint4 *right,
                                       float *out, int edges) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) / 8, part = threadIdx.x % 8;
    const int2 ends = edge[min(i, edges - 1)];
    const uint4 a = left[size_t(ends.x) * 8 + part], b = right[size_t(ends.y) * 8 + part];
    const __half2 *p = reinterpret_cast<const __half2 *>(&a), *q = reinterpret_cast<const __half2 *>(&b);
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float2 f = __half22float2(p[k]), g = __half22float2(q[k]);
        sum += f.x * g.x + f.y * g.y;
    }
    for (int d = 4; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (part == 0 && i < edges) out[i] = sum * weight[i];
}

__device__ void fetch(float2 *to, const float2 *from) {
    const unsigned address = __cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

// A product of complex matrices: tiles of 64 by 64, a thread's share 4 by 4, whose factors come by cp.async, eight deep,
// one step ahead. m and n are multiples of 64, `depth` of 8.
extern "C" __global__ void __launch_bounds__(256) complex_product(const float2 *a, const float2 *b, float2 *c, int n,
                                                                  int depth) {
    __shared__ __align__(16) float2 left[2][64][10], right[2][8][64];
    const int t = threadIdx.x, tx = t % 16, ty = t / 16;
    const float2 *from_a = a + (blockIdx.y * 64 + t / 4) * size_t(depth) + t % 4 * 2;
    const float2 *from_b = b + (t / 32) * size_t(n) + blockIdx.x * 64 + t % 32 * 2;
    float2 sum[4][4] = {};
    fetch(&left[0][t / 4][t % 4 * 2], from_a);
    fetch(&right[0][t / 32][t % 32 * 2], from_b);
    asm volatile("cp.async.commit_group;");
    for (int k = 0; k < depth; k += 8) {
        const int now = k / 8 % 2;
        if (k + 8 < depth) {
            fetch(&left[1 - now][t / 4][t % 4 * 2], from_a + k + 8);
            fetch(&right[1 - now][t / 32][t % 32 * 2], from_b + (k + 8) * size_t(n));
        }
        asm volatile("cp.async.commit_group;");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
#pragma unroll
        for (int d = 0; d < 8; d++) {
            float2 x[4], y[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                x[i] = left[now][4 * ty + i][d];
                y[i] = right[now][d][tx + 16 * i];
            }
#pragma unroll
            for (int i = 0; i < 16; i++) {
                float2 &s = sum[i / 4][i % 4];
                const float2 f = x[i / 4], g = y[i % 4];
                s.x += f.x * g.x;
                s.x -= f.y * g.y;
                s.y += f.x * g.y;
                s.y += f.y * g.x;
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 16; i++)
        c[(blockIdx.y * 64 + 4 * ty + i / 4) * size_t(n) + blockIdx.x * 64 + tx + i % 4 * 16] = sum[i / 4][i % 4];
}

// A layer of convolutions of 3 by 3 with its bias and ReLU, channels last, by tensor cores: a block has 4 by 16 places
// and 64 of the outputs; a warp has a line of 16. Channels are multiples of 16, outputs of 64.
extern "C" __global__ void __launch_bounds__(128) conv3x3_wmma(const __half *x, const __half *weight, const float *bias,
                                                               __half2 *y, int height, int width, int channels,
                                                               int outputs) {
    using namespace nvcuda;
    __shared__ __align__(32) __half patch[6][18][16], taps[9][16][80];
    __shared__ __align__(32) float sums[4][16][68];
    const int t = threadIdx.x, warp = t / 32, lane = t % 32, image = blockIdx.z, first = blockIdx.y * 64;
    const int across = (width + 15) / 16, top = blockIdx.x / across * 4, left = blockIdx.x % across * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[4];
    for (int j = 0; j < 4; j++) wmma::fill_fragment(sum[j], 0.0f);
    for (int c = 0; c < channels; c += 16) {
        for (int i = t; i < 6 * 18 * 2; i += 128) {
            const int row = top - 1 + i / 36, column = left - 1 + i / 2 % 18;
            uint4 some = {0, 0, 0, 0};
            if (row >= 0 && row < height && column >= 0 && column < width)
                some = *(const uint4 *)&x[((size_t(image) * height + row) * width + column) * channels + c + i % 2 * 8];
            *(uint4 *)&patch[i / 36][i / 2 % 18][i % 2 * 8] = some;
        }
        for (int i = t; i < 9 * 16 * 8; i += 128)
            *(uint4 *)&taps[i / 128][i / 8 % 16][i % 8 * 8] =
                *(const uint4 *)&weight[(size_t(i / 128) * channels + c + i / 8 % 16) * outputs + first + i % 8 * 8];
        __syncthreads();
#pragma unroll
        for (int tap = 0; tap < 9; tap++) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> places;
            wmma::load_matrix_sync(places, patch[warp + tap / 3][tap % 3], 16);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> filters;
                wmma::load_matrix_sync(filters, &taps[tap][0][16 * j], 80);
                wmma::mma_sync(sum[j], places, filters, sum[j]);
            }
        }
        __syncthreads();
    }
    for (int j = 0; j < 4; j++) wmma::store_matrix_sync(&sums[warp][0][16 * j], sum[j], 68, wmma::mem_row_major);
    __syncwarp();
    const int row = top + warp;
    const float low = bias[first + 2 * lane], high = bias[first + 2 * lane + 1];
    for (int k = 0; k < 16 && row < height && left + k < width; k++) {
        const float *s = &sums[warp][k][2 * lane];
        y[(((size_t(image) * height + row) * width + left + k) * outputs + first) / 2 + lane] =
            __floats2half2_rn(fmaxf(s[0] + low, 0.0f), fmaxf(s[1] + high, 0.0f));
    }
}

// Attention without a softmax, as a recurrence: a block has a head's state of 64 by 64, which decays and gets each
// step's product of key and value; queries read it. Sixteen steps at a time come to shared memory.
extern "C" __global__ void __launch_bounds__(256) retention(const __nv_bfloat162 *q, const __nv_bfloat162 *k,
                                                            const __nv_bfloat162 *v, const float *decay, float *out,
                                                            int steps) {
    __shared__ float2 queries[16][32], keys[16][32], values[16][32];
    __shared__ float parts[16][4][64];
    const int t = threadIdx.x, column = t % 64, group = t / 64;
    const size_t head = size_t(blockIdx.x) * steps * 32;
    const float keep = decay[blockIdx.x];
    float state[16] = {};
    for (int first = 0; first < steps; first += 16) {
        const int many = min(16, steps - first);
        for (int i = t; i < many * 32; i += 256) {
            const size_t at = head + first * 32 + i;
            queries[i / 32][i % 32] = __bfloat1622float2(q[at]);
            keys[i / 32][i % 32] = __bfloat1622float2(k[at]);
            values[i / 32][i % 32] = __bfloat1622float2(v[at]);
        }
        __syncthreads();
        for (int s = 0; s < many; s++) {
            const float value = ((const float *)values[s])[column];
            float sum = 0;
#pragma unroll
            for (int d = 0; d < 8; d++) {
                const float2 key = keys[s][group * 8 + d], query = queries[s][group * 8 + d];
                state[2 * d] = keep * state[2 * d] + key.x * value;
                state[2 * d + 1] = keep * state[2 * d + 1] + key.y * value;
                sum += query.x * state[2 * d] + query.y * state[2 * d + 1];
            }
            parts[s][group][column] = sum;
        }
        __syncthreads();
        for (int i = t; i < many * 64; i += 256) {
            const int s = i / 64, c = i % 64;
            out[2 * head + first * 64 + i] = parts[s][0][c] + parts[s][1][c] + parts[s][2][c] + parts[s][3][c];
        }
    }
}

// Uniform numbers by Philox 4x32-10, whose counter is the place.
extern "C" __global__ void philox_uniforms(float4 *out, int n, unsigned low, unsigned high) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        uint4 c = {unsigned(i), 0, 0, 0};
        unsigned k0 = low, k1 = high;
#pragma unroll
        for (int round = 0; round < 10; round++) {
            const unsigned h0 = __umulhi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x;
            const unsigned h1 = __umulhi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
            c = {h1 ^ c.y ^ k0, l1, h0 ^ c.w ^ k1, l0};
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        out[i] = {(c.x >> 8) * 0x1p-24f, (c.y >> 8) * 0x1p-24f, (c.z >> 8) * 0x1p-24f, (c.w >> 8) * 0x1p-24f};
    }
}

__device__ int ones(uint4 x) { return __popc(x.x) + __popc(x.y) + __popc(x.z) + __popc(x.w); }

// For each molecule's fingerprint of 512 bits the most similar of the queries, by Tanimoto's measure.
extern "C" __global__ void tanimoto_best(const uint4 *library, const uint4 *query, float *best, int *which, int n,
                                         int queries) {
    __shared__ uint4 some[64][4];
    __shared__ int set[64];
    const int t = threadIdx.x, i = blockIdx.x * 256 + t;
    uint4 mine[4];
    int have = 0, where = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) have += ones(mine[k] = library[size_t(min(i, n - 1)) * 4 + k]);
    float most = -1;
    for (int first = 0; first < queries; first += 64) {
        const int many = min(64, queries - first);
        __syncthreads();
        if (t < 4 * many) some[t / 4][t % 4] = query[first * 4 + t];
        __syncthreads();
        if (t < many) set[t] = ones(some[t][0]) + ones(some[t][1]) + ones(some[t][2]) + ones(some[t][3]);
        __syncthreads();
        for (int j = 0; j < many; j++) {
            int common = 0;
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const uint4 a = mine[k], b = some[j][k];
                common += ones({a.x & b.x, a.y & b.y, a.z & b.z, a.w & b.w});
            }
            const float alike = float(common) / float(have + set[j] - common);
            if (alike > most) most = alike, where = first + j;
        }
    }
    if (i < n) best[i] = most, which[i] = where;
}

struct Water {
    float height, along, across;
};

// What goes from one place to the next, by Rusanov.
__device__ Water flow(Water a, Water b) {
    const float u = a.along / a.height, v = b.along / b.height;
    const float fast = fmaxf(fabsf(u) + sqrtf(9.81f * a.height), fabsf(v) + sqrtf(9.81f * b.height));
    const float press = 4.905f * (a.height * a.height + b.height * b.height);
    return {0.5f * (a.along + b.along - fast * (b.height - a.height)),
            0.5f * (a.along * u + b.along * v + press - fast * (b.along - a.along)),
            0.5f * (a.across * u + b.across * v - fast * (b.across - a.across))};
}

// A step of shallow water, by finite volumes, of which each thread has one; `ratio` is of the step to their side.
extern "C" __global__ void shallow_water(const float *now, float *next, int height, int width, float ratio) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const size_t n = size_t(height) * width;
    const auto at = [&](int row, int column) {
        const size_t i = size_t(min(max(row, 0), height - 1)) * width + min(max(column, 0), width - 1);
        return Water{now[i], now[n + i], now[2 * n + i]};
    };
    const auto turned = [&](int row, int column) {
        const Water w = at(row, column);
        return Water{w.height, w.across, w.along};
    };
    const Water mine = at(y, x), other = turned(y, x);
    const Water west = flow(at(y, x - 1), mine), east = flow(mine, at(y, x + 1));
    const Water north = flow(turned(y - 1, x), other), south = flow(other, turned(y + 1, x));
    const size_t i = size_t(y) * width + x;
    next[i] = mine.height - ratio * (east.height - west.height + south.height - north.height);
    next[n + i] = mine.along - ratio * (east.along - west.along + south.across - north.across);
    next[2 * n + i] = mine.across - ratio * (east.across - west.across + south.along - north.along);
}

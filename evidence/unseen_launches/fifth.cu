// The fifth set's kernels in CUDA C++; fifth.py has their cases.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// Winograd's transform of the input for F(2x2, 3x3): a thread for each tile of 4 by 4, whose 16 numbers go to 16 matrices.
extern "C" __global__ void winograd_input(const float *x, float *v, int height, int width, int across, int tiles) {
    const int tile = blockIdx.x * blockDim.x + threadIdx.x, plane = blockIdx.y;
    if (tile >= tiles) return;
    const int top = tile / across * 2 - 1, left = tile % across * 2 - 1;
    const float *in = x + size_t(plane) * height * width;
    float d[4][4], t[4][4];
#pragma unroll
    for (int k = 0; k < 16; k++) {
        const int row = top + k / 4, column = left + k % 4;
        const bool inside = row >= 0 && row < height && column >= 0 && column < width;
        d[k / 4][k % 4] = inside ? in[row * width + column] : 0.0f;
    }
#pragma unroll
    for (int c = 0; c < 4; c++) {
        t[0][c] = d[0][c] - d[2][c];
        t[1][c] = d[1][c] + d[2][c];
        t[2][c] = d[2][c] - d[1][c];
        t[3][c] = d[1][c] - d[3][c];
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const float u[4] = {t[r][0] - t[r][2], t[r][1] + t[r][2], t[r][2] - t[r][1], t[r][1] - t[r][3]};
#pragma unroll
        for (int c = 0; c < 4; c++) v[(size_t(4 * r + c) * gridDim.y + plane) * tiles + tile] = u[c];
    }
}

__device__ void multiply_add(int *c, const int *a, const int *b) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// A linear layer of 8 bits, y = x w', by tensor cores; scales of tokens and of channels make halves of its sums.
extern "C" __global__ void __launch_bounds__(128) int8_linear(const int4 *x, const int4 *w, const float *token,
                                                              const float *channel, __half2 *y, int m, int n, int k) {
    __shared__ int4 xs[64][5], ws[64][5];  // 64 bytes of a row and 16 to go to other banks
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = lane / 4, quarter = lane % 4;
    const int row = blockIdx.y * 64, column = blockIdx.x * 64, up = warp / 2 * 32, right = warp % 2 * 32;
    int c[2][4][4] = {};
    for (int first = 0; first < k / 16; first += 4) {
        for (int i = threadIdx.x; i < 256; i += 128) {
            const size_t part = first + i % 4;
            xs[i / 4][i % 4] = x[min(row + i / 4, m - 1) * size_t(k / 16) + part];
            ws[i / 4][i % 4] = w[min(column + i / 4, n - 1) * size_t(k / 16) + part];
        }
        __syncthreads();
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int a[2][4], b[4][2];
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    a[i][j] = ((const int *)xs[up + 16 * i + group + j % 2 * 8])[8 * half + quarter + j / 2 * 4];
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 2; j++)
                    b[i][j] = ((const int *)ws[right + 8 * i + group])[8 * half + quarter + j * 4];
#pragma unroll
            for (int i = 0; i < 8; i++) multiply_add(c[i / 4][i % 4], a[i / 4], b[i % 4]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 16; i++) {
        const int r = row + up + i / 8 * 16 + i % 2 * 8 + group, j = column + right + i / 2 % 4 * 8 + 2 * quarter;
        const int *sums = c[i / 8][i / 2 % 4] + i % 2 * 2;
        if (r < m && j < n)
            y[(size_t(r) * n + j) / 2] = __floats2half2_rn(sums[0] * token[r] * channel[j], sums[1] * token[r] * channel[j + 1]);
    }
}

// A step of decoding: a query's attention to `split` positions of a cache that four heads share; a block for each head
// and split, and a warp for every fourth position. Left to do: the sum over splits.
extern "C" __global__ void split_attention(const float2 *q, const __half2 *key, const __half2 *value, float2 *sum,
                                           float2 *most_and_total, int positions, int split) {
    __shared__ float mosts[4], totals[4];
    __shared__ float2 sums[4][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, head = blockIdx.y;
    const size_t cache = size_t(head / 4) * positions * 32 + lane, out = size_t(head) * gridDim.x + blockIdx.x;
    const float2 mine = q[head * 32 + lane];
    const int end = min(positions, int(blockIdx.x + 1) * split);
    float most = -1e30f, total = 0;
    float2 a = {0, 0};
    for (int p = blockIdx.x * split + warp; p < end; p += 4) {
        const float2 k = __half22float2(key[cache + size_t(p) * 32]), v = __half22float2(value[cache + size_t(p) * 32]);
        float score = mine.x * k.x + mine.y * k.y;
        for (int d = 16; d > 0; d /= 2) score += __shfl_xor_sync(0xffffffffu, score, d);
        score *= 0.125f;
        const float higher = fmaxf(most, score), old = __expf(most - higher), now = __expf(score - higher);
        a = {a.x * old + now * v.x, a.y * old + now * v.y};
        total = total * old + now;
        most = higher;
    }
    mosts[warp] = most;
    totals[warp] = total;
    sums[warp][lane] = a;
    __syncthreads();
    if (warp > 0) return;
    float highest = mosts[0];
    for (int k = 1; k < 4; k++) highest = fmaxf(highest, mosts[k]);
    a = {0, 0};
    total = 0;
    for (int k = 0; k < 4; k++) {
        const float share = __expf(mosts[k] - highest);
        a = {a.x + share * sums[k][lane].x, a.y + share * sums[k][lane].y};
        total += share * totals[k];
    }
    sum[out * 32 + lane] = a;
    if (lane == 0) most_and_total[out] = {highest, total};
}

__device__ unsigned mixed(unsigned x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

__device__ void keep_larger(float &best, int &where, float other, int there) {
    if (other > best || (other == best && there < where)) best = other, where = there;
}

// Tokens drawn from rows of logits: the largest after Gumbel's noise.
extern "C" __global__ void gumbel_tokens(const float *logit, int *token, int n, float coldness, unsigned seed) {
    __shared__ float bests[8];
    __shared__ int places[8];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float best = -1e30f;
    int where = n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const unsigned bits = mixed(mixed(seed + blockIdx.x) + i);
        const float u = ((bits >> 9) + 0.5f) * 0x1p-23f;
        keep_larger(best, where, logit[size_t(blockIdx.x) * n + i] * coldness - __logf(-logf(u)), i);
    }
    for (int d = 16; d > 0; d /= 2)
        keep_larger(best, where, __shfl_down_sync(0xffffffffu, best, d), __shfl_down_sync(0xffffffffu, where, d));
    if (lane == 0) bests[warp] = best, places[warp] = where;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int k = 1; k < 8; k++) keep_larger(best, where, bests[k], places[k]);
    token[blockIdx.x] = where;
}

struct Run {
    float sum;
    int begun;
};

__device__ Run behind(Run a, Run b) { return {b.begun ? b.sum : a.sum + b.sum, a.begun | b.begun}; }

__device__ Run warp_runs(Run mine) {
    for (int d = 1; d < 32; d *= 2) {
        const Run other = {__shfl_up_sync(0xffffffffu, mine.sum, d), __shfl_up_sync(0xffffffffu, mine.begun, d)};
        if (threadIdx.x % 32 >= d) mine = behind(other, mine);
    }
    return mine;
}

// Prefix sums that begin anew at each flag, in tiles of 1024; what a tile hands on comes out, too.
extern "C" __global__ void flagged_scan(const float4 *x, const uchar4 *flag, float4 *out, float2 *carry, int n) {
    __shared__ Run warps[8];
    const int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float4 v = i < n ? x[i] : float4{0, 0, 0, 0};
    const uchar4 f = i < n ? flag[i] : uchar4{0, 0, 0, 0};
    if (!f.y) v.y += v.x;
    if (!f.z) v.z += v.y;
    if (!f.w) v.w += v.z;
    const Run all = warp_runs({v.w, f.x | f.y | f.z | f.w});
    if (lane == 31) warps[warp] = all;
    __syncthreads();
    Run before = {0, 0};
    for (int k = 0; k < warp; k++) before = behind(before, warps[k]);
    if (threadIdx.x == 255) {
        const Run last = behind(before, all);
        carry[blockIdx.x] = {last.sum, float(last.begun)};
    }
    const Run left = {__shfl_up_sync(0xffffffffu, all.sum, 1), __shfl_up_sync(0xffffffffu, all.begun, 1)};
    const float sum = lane > 0 ? behind(before, left).sum : before.sum;
    if (!f.x) v.x += sum;
    if (!(f.x | f.y)) v.y += sum;
    if (!(f.x | f.y | f.z)) v.z += sum;
    if (!(f.x | f.y | f.z | f.w)) v.w += sum;
    if (i < n) out[i] = v;
}

// A pass of a radix sort over four bits: each tile of 1024 sorts its keys, bit by bit, then writes them to where
// `start`, the first place of each digit of each tile, says.
extern "C" __global__ void radix_scatter(const unsigned *key, const int *start, unsigned *out, int n, int shift) {
    __shared__ unsigned keys[1024];
    __shared__ int warps[8], first[16];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32, base = blockIdx.x * 1024;
    for (int k = t; k < 1024; k += 256) keys[k] = base + k < n ? key[base + k] : 0xffffffffu;
    for (int bit = shift; bit < shift + 4; bit++) {
        __syncthreads();
        unsigned mine[4];
        int ones = 0;
        for (int k = 0; k < 4; k++) ones += (mine[k] = keys[4 * t + k]) >> bit & 1;
        int up_to = ones;
        for (int d = 1; d < 32; d *= 2) {
            const int other = __shfl_up_sync(0xffffffffu, up_to, d);
            if (lane >= d) up_to += other;
        }
        if (lane == 31) warps[warp] = up_to;
        __syncthreads();
        int before = up_to - ones, all = 0;
        for (int k = 0; k < 8; k++) {
            if (k < warp) before += warps[k];
            all += warps[k];
        }
        for (int k = 0; k < 4; k++) {
            const int one = mine[k] >> bit & 1;
            keys[one ? 1024 - all + before : 4 * t + k - before] = mine[k];
            before += one;
        }
    }
    __syncthreads();
    for (int k = t; k < 1024; k += 256) {
        const int digit = keys[k] >> shift & 15;
        if (k == 0 || (keys[k - 1] >> shift & 15) != digit) first[digit] = k;
    }
    __syncthreads();
    for (int k = t; k < min(1024, n - base); k += 256) {
        const int digit = keys[k] >> shift & 15;
        out[start[digit * gridDim.x + blockIdx.x] + k - first[digit]] = keys[k];
    }
}

__constant__ float WEIGHT[5] = {-205 / 72.0f, 8 / 5.0f, -1 / 5.0f, 8 / 315.0f, -1 / 560.0f};

// A step of sound through rock, of eighth order in space: a block's tile goes through the planes, of which a thread has
// nine numbers at a time. `now` has a border of four on all sides.
extern "C" __global__ void seismic_step(const float *now, const float *before, const float *speed, float *next, int depth,
                                        int height, int width) {
    __shared__ float tile[16][40];
    const int tx = threadIdx.x, ty = threadIdx.y, x0 = blockIdx.x * 32, y0 = blockIdx.y * 8, pitch = width + 8;
    const int x = min(x0 + tx, width - 1), y = min(y0 + ty, height - 1);
    const bool inside = x0 + tx < width && y0 + ty < height;
    const size_t plane = size_t(pitch) * (height + 8), mine = size_t(y + 4) * pitch + x + 4;
    float line[9];
#pragma unroll
    for (int k = 0; k < 8; k++) line[k + 1] = now[k * plane + mine];
    for (int z = 0; z < depth; z++) {
#pragma unroll
        for (int k = 0; k < 8; k++) line[k] = line[k + 1];
        line[8] = now[(z + 8) * plane + mine];
        __syncthreads();
        for (int k = ty * 32 + tx; k < 640; k += 256) {
            const int row = min(y0 + k / 40, height + 7), column = min(x0 + k % 40, pitch - 1);
            tile[k / 40][k % 40] = now[(z + 4) * plane + size_t(row) * pitch + column];
        }
        __syncthreads();
        float sum = 3 * WEIGHT[0] * line[4];
#pragma unroll
        for (int d = 1; d <= 4; d++)
            sum += WEIGHT[d] * (line[4 - d] + line[4 + d] + tile[ty + 4 - d][tx + 4] + tile[ty + 4 + d][tx + 4] +
                                tile[ty + 4][tx + 4 - d] + tile[ty + 4][tx + 4 + d]);
        const size_t at = (size_t(z) * height + y) * width + x;
        if (inside) next[at] = 2 * line[4] - before[at] + speed[at] * sum;
    }
}

// Neighbours' features added up by a sparse matrix: a warp for each row, two of 64 features in each lane.
extern "C" __global__ void spmm_rows(const int *begin, const int *column, const float *weight, const float2 *feature,
                                     float2 *out, int rows) {
    const int lane = threadIdx.x % 32, row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= rows) return;
    float2 sum = {0, 0};
    for (int k = begin[row], end = begin[row + 1]; k < end; k++) {
        const float2 f = feature[size_t(column[k]) * 32 + lane];
        const float w = weight[k];
        sum = {sum.x + w * f.x, sum.y + w * f.y};
    }
    out[size_t(row) * 32 + lane] = sum;
}

__device__ unsigned ordered(float x) {
    const unsigned bits = __float_as_uint(x);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// The k-th largest of each row, byte by byte of its order from the highest: four histograms in shared memory.
extern "C" __global__ void kth_largest(const float *x, float *out, int n, int k) {
    __shared__ int count[256];
    __shared__ unsigned chosen;
    __shared__ int left;
    if (threadIdx.x == 0) chosen = 0, left = k;
    for (int shift = 24; shift >= 0; shift -= 8) {
        if (threadIdx.x < 256) count[threadIdx.x] = 0;
        __syncthreads();
        const unsigned high = chosen, mask = shift == 24 ? 0 : 0xffffffffu << shift + 8;
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            const unsigned v = ordered(x[size_t(blockIdx.x) * n + i]);
            if ((v & mask) == high) atomicAdd(count + (v >> shift & 255), 1);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            int digit = 255;
            while (left > count[digit]) left -= count[digit--];
            chosen |= digit << shift;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = __uint_as_float(chosen >> 31 ? chosen ^ 0x80000000u : ~chosen);
}

// Weights as 4-bit NormalFloat: a scale for every 64, which 16 lanes read, and each number's place between 15 borders.
extern "C" __global__ void nf4_weights(const float4 *x, const float *border, unsigned short *code, float *scale, int n) {
    __shared__ float borders[15];
    if (threadIdx.x < 15) borders[threadIdx.x] = border[threadIdx.x];
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 v = i < n ? x[i] : float4{0, 0, 0, 0};
    float most = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
    for (int d = 8; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, d));
    if (i >= n) return;
    const float each[4] = {v.x, v.y, v.z, v.w}, by = 1.0f / most;
    unsigned word = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        unsigned place = 0;
#pragma unroll
        for (int step = 8; step > 0; step /= 2)
            if (each[k] * by > borders[place + step - 1]) place += step;
        word |= place << 4 * k;
    }
    code[i] = word;
    if (i % 16 == 0) scale[i / 16] = most;
}

__device__ float block_sum(float mine, float *warps) {
    for (int d = 16; d > 0; d /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, d);
    if (threadIdx.x == 0) warps[threadIdx.y] = mine;
    __syncthreads();
    float sum = warps[threadIdx.x];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    __syncthreads();
    return sum;
}

// Poisson's equation on squares of 32 by 32 by conjugate gradients, a block of 1024 threads for each square.
extern "C" __global__ void poisson_cg(const float *b, float *x, int steps) {
    __shared__ float p[34][34], warps[32];
    const int tx = threadIdx.x, ty = threadIdx.y, at = blockIdx.x * 1024 + ty * 32 + tx;
    for (int k = ty * 32 + tx; k < 34 * 34; k += 1024) p[k / 34][k % 34] = 0;
    __syncthreads();
    float r = b[at], sum = 0, square = block_sum(r * r, warps), mine = r;
    for (int step = 0; step < steps; step++) {
        p[ty + 1][tx + 1] = mine;
        __syncthreads();
        const float product = 4 * mine - p[ty][tx + 1] - p[ty + 2][tx + 1] - p[ty + 1][tx] - p[ty + 1][tx + 2];
        const float far = square / block_sum(mine * product, warps);
        sum += far * mine;
        r -= far * product;
        const float old = square;
        square = block_sum(r * r, warps);
        mine = r + square / old * mine;
    }
    x[at] = sum;
}

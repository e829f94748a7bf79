// A layer of LSTM cells (Hochreiter and Schmidhuber, 1997) with cuDNN's gates: of each step's x and the h before it,
//
//     i, f, g, o = σ, σ, tanh, σ of  x·Wᵀ + b + h·Rᵀ + b'     rows of W and R: all of i, then of f, g, o
//     c = f · c + i · g        h = o · tanh(c)
//
// A step's product is small: 64 × 512 by 512 × 2048 are 134 MFLOP, a fraction of a microsecond for the tensor cores,
// and it reads 2 MB of R. What takes the time is what is between the products.
//
// lstm_cell        What follows the product, in one kernel: adding, four gates, c and h. As kernels of their own these
//                  are a dozen launches, each of which writes and reads again what this one keeps in registers.
//                  Expected: two launches per step, this and the product, 2 to 3 µs each however small they are.
// lstm_persistent  All steps in one launch (Diamos et al., "Persistent RNNs", 2016): R stays in registers, spread over
//                  the blocks of the whole GPU, and c in those of the threads that own it. A step reads h, from the L2
//                  cache, and a barrier of all blocks separates it from the next, so all must be resident at once: a
//                  cooperative launch. 512 × 2048 elements of R in FP16 are 16 KB for each of 128 multiprocessors.
//                  Expected: a step costs a barrier and the way of h through the L2 cache, some 2 µs.
// Reached, µs per step in FP16, x·Wᵀ of all steps included (batch 32 of 512 units, 1 of 256, 64 of 128): lstm_cell and
// cuBLAS 9.6, 8.4, 8.5; lstm_persistent 3.1, 1.8, 3.6; cuDNN 9.19's standard algorithm 10.1, 8.8, 9.2, and the fastest
// of its persistent ones 2.8, 1.4, 1.8. NVIDIA H100 80GB HBM3, 2026-11-27.
// On 2026-11-22, the kernel alone, batch 32 of 512 units: 2.7; without its barrier 2.2, and without reading
// h 1.8, both with wrong results; with grid.sync() of cooperative groups 2.9. Batch 64 of 1024 units: 5.1.
#include "vectors.cuh"

constexpr int BLOCK = 256;  // threads of lstm_cell

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// h and c from the sums of the gates i, f, g, o.
__device__ __forceinline__ float cell(const float (&gate)[4], float &c) {
    c = sigmoid(gate[1]) * c + sigmoid(gate[0]) * tanhf(gate[2]);
    return sigmoid(gate[3]) * tanhf(c);
}

// of_x, of_h: x·Wᵀ and h·Rᵀ, n × 4 · hidden. A thread has VEC neighbouring units of a row. c is replaced.
template <typename T, int VEC>
__global__ void __launch_bounds__(BLOCK)
    lstm_cell(const T *of_x, const T *of_h, const float *bias, float *c, T *h, int n, int hidden) {
    const unsigned i = (blockIdx.x * BLOCK + threadIdx.x) * VEC;
    if (i >= unsigned(n) * hidden) return;
    const int row = i / hidden, unit = i % hidden;
    float gate[4][VEC];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const size_t place = (size_t(row) * 4 + k) * hidden + unit;
        float x[VEC], before[VEC];
        unpack(x, load<VEC>(of_x + place));
        unpack(before, load<VEC>(of_h + place));
#pragma unroll
        for (int v = 0; v < VEC; v++) gate[k][v] = x[v] + before[v] + bias[k * hidden + unit + v];
    }
    float result[VEC];
#pragma unroll
    for (int v = 0; v < VEC; v++) {
        const float mine[4] = {gate[0][v], gate[1][v], gate[2][v], gate[3][v]};
        result[v] = cell(mine, c[i + v]);
    }
    store<VEC>(h + i, result);
}

// -- all steps in one launch -----------------------------------------------------------------------------------------

// sum += a · b for 16 × 16 by 16 × 8.
__device__ __forceinline__ void multiply_add(
    float (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// The barrier of all blocks in two halves: what this block wrote before `arrive` is seen by those that wait for it.
__device__ __forceinline__ void arrive(unsigned *arrived) {
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
    }
}

__device__ __forceinline__ void wait(const unsigned *arrived, unsigned count) {
    if (threadIdx.x == 0) {
        unsigned now;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
        } while (now < count);
    }
    __syncthreads();
}

// A block has UNITS hidden units, so 4 · UNITS rows of R. Its WARPS share the depth of the product, CHUNKS times 32
// each; hidden is 32 · WARPS · CHUNKS. n is at most 8 · TILES.
//
// The product is R · hᵀ. In mma's fragments a lane holds pairs of neighbours along the depth, 8 apart. As any order of
// the depth will do that is the same for both factors, a lane takes 8 neighbours instead, for two instructions, and
// these come from R and h with one load of 16 bytes, without shared memory.
//
// of_x: x·Wᵀ of all steps, steps × n × 4 · hidden. arrived: 0 before. The warps' sums go through dynamic shared memory,
// WARPS × 4 · UNITS × LINE floats; LINE is an odd multiple of 8, which spreads four rows over all banks.
template <int UNITS, int WARPS, int CHUNKS, int TILES>
__global__ void __launch_bounds__(32 * WARPS)
    lstm_persistent(const half *of_x, const half *r, const float *bias, const half *h0, const float *c0, half *y,
                    float *c_last, unsigned *arrived, int steps, int n) {
    constexpr int HIDDEN = 32 * WARPS * CHUNKS, ROWS = 4 * UNITS, LINE = 8 * (TILES | 1), THREADS = 32 * WARPS;
    constexpr int EACH = (UNITS * 8 * TILES + THREADS - 1) / THREADS;  // elements of h that a thread computes
    static_assert(ROWS % 16 == 0 && THREADS % UNITS == 0);
    extern __shared__ float sums[];
    const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, place = threadIdx.x % 4;
    const int first_unit = blockIdx.x * UNITS, unit = threadIdx.x % UNITS;
    const int depth = warp * 32 * CHUNKS + 8 * place;  // the lane's first

    uint4 weights[ROWS / 8][CHUNKS];  // of rows 8 · m + group
#pragma unroll
    for (int m = 0; m < ROWS / 8; m++) {
        const int row = 8 * m + group;
        const half *from = r + size_t(row / UNITS * HIDDEN + first_unit + row % UNITS) * HIDDEN + depth;
#pragma unroll
        for (int k = 0; k < CHUNKS; k++) weights[m][k] = load<8>(from + 32 * k);
    }
    float b[4], c[EACH];
#pragma unroll
    for (int k = 0; k < 4; k++) b[k] = bias[k * HIDDEN + first_unit + unit];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int row = (threadIdx.x + e * THREADS) / UNITS;
        c[e] = row < n ? c0[row * HIDDEN + first_unit + unit] : 0.0f;
    }

    for (int step = 0; step < steps; step++) {
        half x[EACH][4];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int row = (threadIdx.x + e * THREADS) / UNITS;
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const size_t at = ((size_t(step) * n + row) * 4 + k) * HIDDEN + first_unit + unit;
                x[e][k] = row < n ? of_x[at] : half(0);
            }
        }
        if (step > 0) wait(arrived, unsigned(step) * gridDim.x);
        const half *const h = step > 0 ? y + size_t(step - 1) * n * HIDDEN : h0;
        float sum[ROWS / 16][TILES][4] = {};
#pragma unroll
        for (int k = 0; k < CHUNKS; k++) {
            uint4 values[TILES];
#pragma unroll
            for (int j = 0; j < TILES; j++) {
                const int row = 8 * j + group;
                // Past the L1 cache, which is not told of what other multiprocessors write.
                values[j] = row < n ? __ldcg(reinterpret_cast<const uint4 *>(h + row * HIDDEN + depth + 32 * k))
                                    : make_uint4(0, 0, 0, 0);
            }
#pragma unroll
            for (int m = 0; m < ROWS / 16; m++) {
                const uint4 &upper = weights[2 * m][k], &lower = weights[2 * m + 1][k];
#pragma unroll
                for (int j = 0; j < TILES; j++) {
                    multiply_add(sum[m][j], upper.x, lower.x, upper.y, lower.y, values[j].x, values[j].y);
                    multiply_add(sum[m][j], upper.z, lower.z, upper.w, lower.w, values[j].z, values[j].w);
                }
            }
        }
#pragma unroll
        for (int m = 0; m < ROWS / 16; m++) {
#pragma unroll
            for (int j = 0; j < TILES; j++) {
                float *to = sums + (warp * ROWS + 16 * m + group) * LINE + 8 * j + 2 * place;
                *reinterpret_cast<float2 *>(to) = make_float2(sum[m][j][0], sum[m][j][1]);
                *reinterpret_cast<float2 *>(to + 8 * LINE) = make_float2(sum[m][j][2], sum[m][j][3]);
            }
        }
        __syncthreads();  // sums of all warps
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int row = (threadIdx.x + e * THREADS) / UNITS;
            if (row >= n) continue;
            float gate[4];
#pragma unroll
            for (int k = 0; k < 4; k++) {
                gate[k] = float(x[e][k]) + b[k];
#pragma unroll
                for (int w = 0; w < WARPS; w++) gate[k] += sums[(w * ROWS + k * UNITS + unit) * LINE + row];
            }
            y[(size_t(step) * n + row) * HIDDEN + first_unit + unit] = half(cell(gate, c[e]));
        }
        if (step + 1 < steps) arrive(arrived);
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int row = (threadIdx.x + e * THREADS) / UNITS;
        if (row < n) c_last[row * HIDDEN + first_unit + unit] = c[e];
    }
}

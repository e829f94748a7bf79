// The gradient of w of few filters: FP16 in NHWC, sums FP32.
// dw[k, r, s, c] = Σ dy[n, p, q, k] · x[n, p · stride − pad + r · dilation, q · ..., c] over images and pixels of y.
// An element of x takes part in FILTERS products for each tap that meets it. wgmma multiplies 64 rows, of which FILTERS
// would be filters, and wants copies of dy and x whose rows are multiples of 8 elements: three launches, and more bytes
// than x has. Here a thread has VEC neighbouring channels and one row of the filter: FILTERS · S · VEC sums in registers.
// Warps take runs of RUN pixels of a row of y in turn, whose gradients come to shared memory first. Of PIXELS of them all
// of x is asked for before the first is used, without a branch; a filter's rows and blocks meet in the caches. Blocks
// leave partial sums, which depthwise_add_partial adds, in the same order in every run.
// Expected: the time of reading x once, while R · S · FILTERS / stride² multiply-adds for an element of x are fewer than
// some 20.
// Reached: 0.9 to 4.4 times the speed of padded copies and wgmma for 1 to 4 filters, 1.5 in the mean of 15 layers (16 ×
// 128 × 56², 3 × 3: 20 µs for one, 37 for four; 36 by wgmma), and less from 5 on (H100 80GB HBM3, 2026-11-26). With
// branches around loads, a pixel at a time, it took 1.0 to 2.0 times as long. ncu: a warp waits 9 clocks for an
// instruction, 3 of them for memory; a third of the memory's bandwidth. What neighbouring rows share is read again: twice
// the bytes of x for 3 × 3 with stride 2.
#include "sizes.cuh"
#include "vectors.cuh"

constexpr int BLOCK = 128, WARPS = BLOCK / 32, RUN = 32, AT_WORK = 6;  // blocks, on a multiprocessor

// Blocks: along x rows of the filter, and chunks of 32 · VEC channels; along y shares of the runs. STRIDE: of columns
// whose dilation is 1, so that neighbouring pixels share what they load; 0 for any.
// partial[gridDim.y][FILTERS][R][S][c]
template <int FILTERS, int S, int VEC, int STRIDE>
__global__ void __launch_bounds__(BLOCK, AT_WORK)
    few_filters(const half *__restrict__ x, const half *__restrict__ dy, float *__restrict__ partial, Sizes g) {
    constexpr int SUMS = FILTERS * S * VEC, WORDS = (VEC + 1) / 2;
    constexpr int PIXELS = SUMS + WORDS * (STRIDE ? 7 * STRIDE + S : 8 * S) <= 44 ? 8 : 4;  // as registers allow
    constexpr int COLUMNS = STRIDE ? (PIXELS - 1) * STRIDE + S : PIXELS * S;  // of x
    using Vector = typename Packed<half, VEC>::type;
    __shared__ float shared[WARPS][SUMS][32];
    __shared__ __align__(16) float grads[WARPS][RUN * FILTERS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int r = blockIdx.x % g.r, channel = (blockIdx.x / g.r * 32 + lane) * VEC;
    const bool mine = channel < g.c;
    const int in_row = (g.q - 1) / RUN + 1, runs = g.n * g.p * in_row;
    float sum[FILTERS][S][VEC] = {};
    for (int run = blockIdx.y * WARPS + warp; run < runs; run += gridDim.y * WARPS) {
        const int row = run / in_row, image = row / g.p;
        const int h = (row - image * g.p) * g.stride_h - g.pad_h + r * g.dilation_h;
        if (unsigned(h) >= unsigned(g.h)) continue;
        const half *line = x + (size_t(image) * g.h + h) * g.w * g.c + (mine ? channel : 0);
        const int begin = (run - row * in_row) * RUN, count = min(RUN, g.q - begin);
        const half *from = dy + (size_t(row) * g.q + begin) * FILTERS;
        __syncwarp();
#pragma unroll
        for (int i = lane; i < RUN * FILTERS; i += 32) {
            grads[warp][i] = i < count * FILTERS ? __half2float(from[i]) : 0.0f;  // read four at a time
        }
        __syncwarp();
        for (int first = 0; first < count; first += PIXELS) {
            Vector value[COLUMNS];
#pragma unroll
            for (int i = 0; i < COLUMNS; i++) {
                const int ahead = STRIDE ? i : i / S * g.stride_w + i % S * g.dilation_w;
                const int w = (begin + first) * g.stride_w - g.pad_w + ahead;
                const bool inside = unsigned(w) < unsigned(g.w);
                value[i] = load<VEC>(line + ptrdiff_t(inside ? w : 0) * g.c);
                if (!inside) value[i] = Vector{};
            }
#pragma unroll
            for (int j = 0; j < PIXELS; j++) {
                if (first + j >= count) break;  // of a warp alike; zeros would make NaN of infinities
#pragma unroll
                for (int s = 0; s < S; s++) {
                    float loaded[VEC];
                    unpack(loaded, value[STRIDE ? j * STRIDE + s : j * S + s]);
#pragma unroll
                    for (int k = 0; k < FILTERS; k++) {
                        const float grad = grads[warp][(first + j) * FILTERS + k];
#pragma unroll
                        for (int v = 0; v < VEC; v++) sum[k][s][v] += grad * loaded[v];
                    }
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < SUMS; i++) shared[warp][i][lane] = sum[i / VEC / S][i / VEC % S][i % VEC];
    __syncthreads();
    for (int i = warp; i < SUMS && mine; i += WARPS) {
        float total = 0;
#pragma unroll
        for (int other = 0; other < WARPS; other++) total += shared[other][i][lane];
        const size_t tap = ((size_t(blockIdx.y) * FILTERS + i / VEC / S) * g.r + r) * S + i / VEC % S;
        partial[tap * g.c + channel + i % VEC] = total;
    }
}

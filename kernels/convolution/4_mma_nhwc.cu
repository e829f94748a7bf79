// 4. Implicit GEMM on the tensor cores: float16 in NHWC, sums float32. Any padding, stride, dilation and groups.
// Changed: pixels × depth by depth × filters with mma.sync, as lab 05's step 4 does it: 64 deep tiles in several stages,
// 16-byte chunks exchanged by chunk ^ row % 8, fragments by ldmatrix one step ahead. Depth is (r, s, c) now: the channels
// of a pixel lie side by side in NHWC, so one cp.async brings eight of them, and writes zeros where the window is in the
// padding. In NCHW eight neighbours along the depth would be eight rows or planes apart.
// Expected: an index for eight products of a pixel, where step 3 finds one for each. With 128 × 128 tiles the limit is
// that of lab 05's step 4, mma.sync's rate; layers of few channels are limited by reading x and writing y.
//
// BM, BN: pixels and filters that a block computes. WM, WN: of a warp. STAGES: pairs of tiles in shared memory. BLOCKS:
// of those that a multiprocessor holds at a time, at least. VECTORS: channels of a group are a multiple of 8, and x and
// w start at multiples of 16 bytes; without, each element is read by itself.
#include <cuda_fp16.h>

#include "sizes.cuh"

constexpr int BK = 64;        // depth of the tiles: rows are 128 bytes, all banks once
constexpr int LINE = BK / 8;  // chunks of 16 bytes in a row of a tile

// Starts a copy of 16 bytes to shared memory, zeros instead unless `inside`.
__device__ __forceinline__ void copy(unsigned to, const half *from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0));
}

__device__ __forceinline__ void store(unsigned to, half value) {
    asm volatile("st.shared.b16 [%0], %1;" ::"r"(to), "h"(__half_as_ushort(value)) : "memory");
}

// Four matrices of 8 × 8 elements; lane 8i + j gives the address of row j of matrix i.
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

// sum += a · b for 16 × 16 by 16 × 8.
__device__ __forceinline__ void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Where a depth is in a filter: k = (r * S + s) * group_c + c.
struct Tap {
    int r, s, c;

    __device__ __forceinline__ Tap(int k, const Sizes &g) : r(0), s(0), c(k) { carry(g); }

    __device__ __forceinline__ void advance(int depth, const Sizes &g) {
        c += depth;
        carry(g);
    }

  private:
    __device__ __forceinline__ void carry(const Sizes &g) {
        while (c >= g.group_c) {
            c -= g.group_c;
            if (++s == g.s) {
                s = 0;
                r++;
            }
        }
    }
};

template <int BM, int BN, int WM, int WN, int STAGES, int BLOCKS, bool VECTORS>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32, BLOCKS)
    conv_mma_nhwc(const half *__restrict__ x, const half *__restrict__ w, const float *__restrict__ bias,
                  half *__restrict__ y, Sizes g, int relu) {
    constexpr int THREADS = BM / WM * (BN / WN) * 32;
    constexpr int ROWS = THREADS / LINE;                             // of a tile, that the block copies at a time
    constexpr int PIXEL_COPIES = BM / ROWS, FILTER_COPIES = BN / ROWS;  // of a thread for a pair of tiles
    constexpr unsigned PIXEL_BYTES = BM * BK * sizeof(half), STAGE_BYTES = (BM + BN) * BK * sizeof(half);
    static_assert(BM % WM == 0 && BN % WN == 0 && WM % 16 == 0 && WN % 16 == 0, "whole fragments, two of w at a time");
    static_assert(ROWS % 8 == 0 && BM % ROWS == 0 && BN % ROWS == 0, "each thread copies rows that are swizzled alike");
    extern __shared__ __align__(128) uint4 memory[];
    const unsigned shared = unsigned(__cvta_generic_to_shared(memory));

    // Blocks run through the tiles of filters first: neighbours at work read the same pixels of x.
    const int pixels = g.n * g.p * g.q;
    const int filter_tiles = (g.group_k - 1) / BN + 1, pixel_tiles = (pixels - 1) / BM + 1;
    const int first_filter = blockIdx.x % filter_tiles * BN, first_pixel = blockIdx.x / filter_tiles % pixel_tiles * BM;
    const int group = blockIdx.x / filter_tiles / pixel_tiles;

    // A thread copies one chunk of several rows: always the same eight of each 64 deep tile.
    const int row = threadIdx.x / LINE, chunk = threadIdx.x % LINE;
    const unsigned to = shared + (row * LINE + (chunk ^ (row % 8))) * 16;
    int h0[PIXEL_COPIES], w0[PIXEL_COPIES], start[PIXEL_COPIES];  // where windows begin, and the element of x there
#pragma unroll
    for (int i = 0; i < PIXEL_COPIES; i++) {
        const int m = first_pixel + row + i * ROWS, line = m / g.q, n = line / g.p;
        h0[i] = m < pixels ? (line - n * g.p) * g.stride_h - g.pad_h : -(1 << 30);  // or where no row of x is
        w0[i] = (m - line * g.q) * g.stride_w - g.pad_w;
        start[i] = ((n * g.h + h0[i]) * g.w + w0[i]) * g.c + group * g.group_c;
    }
    const half *const filters = w + (group * g.group_k + first_filter + row) * g.depth;
    Tap tap(chunk * 8, g);
    int depth = chunk * 8;
    auto copy_tiles = [&](int stage) {
        const unsigned at = to + stage * STAGE_BYTES;
        if (VECTORS) {
            const int down = tap.r * g.dilation_h, right = tap.s * g.dilation_w;
            const int further = (down * g.w + right) * g.c + tap.c;
#pragma unroll
            for (int i = 0; i < PIXEL_COPIES; i++) {
                const bool inside =
                    depth < g.depth && unsigned(h0[i] + down) < unsigned(g.h) && unsigned(w0[i] + right) < unsigned(g.w);
                copy(at + i * ROWS * LINE * 16, x + (inside ? start[i] + further : 0), inside);
            }
#pragma unroll
            for (int i = 0; i < FILTER_COPIES; i++) {
                const bool inside = depth < g.depth && first_filter + row + i * ROWS < g.group_k;
                copy(at + PIXEL_BYTES + i * ROWS * LINE * 16, inside ? filters + i * ROWS * g.depth + depth : w, inside);
            }
        } else {
            Tap each = tap;
#pragma unroll 1
            for (int j = 0; j < 8; j++) {
                const int down = each.r * g.dilation_h, right = each.s * g.dilation_w;
                const int further = (down * g.w + right) * g.c + each.c;
#pragma unroll
                for (int i = 0; i < PIXEL_COPIES; i++) {
                    const bool inside = depth + j < g.depth && unsigned(h0[i] + down) < unsigned(g.h) &&
                                        unsigned(w0[i] + right) < unsigned(g.w);
                    store(at + i * ROWS * LINE * 16 + j * 2, inside ? x[start[i] + further] : half(0));
                }
#pragma unroll
                for (int i = 0; i < FILTER_COPIES; i++) {
                    const bool inside = depth + j < g.depth && first_filter + row + i * ROWS < g.group_k;
                    store(at + PIXEL_BYTES + i * ROWS * LINE * 16 + j * 2,
                          inside ? filters[i * ROWS * g.depth + depth + j] : half(0));
                }
                each.advance(1, g);
            }
        }
        tap.advance(BK, g);
        depth += BK;
    };

    // Lanes give the addresses of row lane % 16 of pixels, the upper half of them eight deeper; of filters, whose rows
    // are as deep, row lane % 8 of one eight, lanes 16 to 31 of the next eight, every second eight lanes eight deeper.
    // 16 deeper flips bits of the chunk's number, and so of the address.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int at_pixel = warp / (BN / WN) * WM, at_filter = warp % (BN / WN) * WN;  // of the block's tile
    const unsigned of_pixels = shared + ((at_pixel + lane % 16) * LINE + ((lane / 16) ^ (lane % 8))) * 16;
    const unsigned of_filters =
        shared + PIXEL_BYTES +
        ((at_filter + lane / 16 * 8 + lane % 8) * LINE + ((lane / 8 % 2) ^ (lane % 8))) * 16;
    float sum[WM / 16][WN / 8][4] = {};
    unsigned a[2][WM / 16][4], b[2][WN / 16][4];  // b: both halves along the depth of two fragments of eight filters
    auto load = [&](int stage, int i, int into) {
#pragma unroll
        for (int r = 0; r < WM / 16; r++) {
            load_matrices(a[into][r], ((of_pixels + stage * STAGE_BYTES) ^ (i * 32)) + r * 16 * LINE * 16);
        }
#pragma unroll
        for (int s = 0; s < WN / 16; s++) {
            load_matrices(b[into][s], ((of_filters + stage * STAGE_BYTES) ^ (i * 32)) + s * 16 * LINE * 16);
        }
    };

    const int tiles = (g.depth - 1) / BK + 1;
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) {
        if (i < tiles) {
            copy_tiles(i);
        }
        asm volatile("cp.async.commit_group;");
    }
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();
    load(0, 0, 0);
    for (int tile = 0, now = 0, next = STAGES - 1; tile < tiles; tile++) {
#pragma unroll
        for (int i = 0; i < BK / 16; i++) {
            if (i < BK / 16 - 1) {
                load(now, i + 1, (i + 1) % 2);
            } else {
                asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
                __syncthreads();
                if (tile + 1 < tiles) {
                    now = now == STAGES - 1 ? 0 : now + 1;
                }
                load(now, 0, 0);
            }
            if (i == 0) {
                if (tile + STAGES - 1 < tiles) {
                    copy_tiles(next);
                }
                asm volatile("cp.async.commit_group;");
                next = next == STAGES - 1 ? 0 : next + 1;
            }
#pragma unroll
            for (int r = 0; r < WM / 16; r++) {
#pragma unroll
                for (int s = 0; s < WN / 8; s++) {
                    multiply_add(sum[r][s], a[i % 2][r], b[i % 2][s / 2][s % 2 * 2], b[i % 2][s / 2][s % 2 * 2 + 1]);
                }
            }
        }
    }

    // Of each 16 × 8 elements, a lane holds two of row lane / 4 and two of the row eight below. Where y takes 16 bytes
    // at a time, they pass through shared memory, so that a warp writes whole rows of the tile.
    constexpr int PITCH = BN + 8;  // of the results in shared memory: eight more, for lanes in eight rows
    static_assert(BM * PITCH * sizeof(half) <= STAGES * STAGE_BYTES, "the results fit in place of the tiles");
    half *const results = reinterpret_cast<half *>(memory);
    const bool wide = g.group_k % 8 == 0 && reinterpret_cast<size_t>(y) % 16 == 0;
    __syncthreads();  // all have read their last fragments
#pragma unroll
    for (int s = 0; s < WN / 8; s++) {
        const int column = at_filter + 8 * s + lane % 4 * 2, k = group * g.group_k + first_filter + column;
        const bool first = first_filter + column < g.group_k, second = first_filter + column + 1 < g.group_k;
        const float bias0 = bias && first ? bias[k] : 0, bias1 = bias && second ? bias[k + 1] : 0;
#pragma unroll
        for (int r = 0; r < WM / 16; r++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int pixel = at_pixel + 16 * r + 8 * h + lane / 4, m = first_pixel + pixel;
                float v0 = sum[r][s][2 * h] + bias0, v1 = sum[r][s][2 * h + 1] + bias1;
                if (relu) {
                    v0 = fmaxf(v0, 0), v1 = fmaxf(v1, 0);
                }
                if (wide) {
                    *reinterpret_cast<half2 *>(results + pixel * PITCH + column) = __floats2half2_rn(v0, v1);
                } else if (m < pixels) {
                    if (first) {
                        y[m * g.k + k] = __float2half_rn(v0);
                    }
                    if (second) {
                        y[m * g.k + k + 1] = __float2half_rn(v1);
                    }
                }
            }
        }
    }
    if (!wide) {
        return;
    }
    __syncthreads();
    constexpr int CHUNKS = BN / 8;  // of 16 bytes, in a row of the tile
#pragma unroll
    for (int i = 0; i < BM * CHUNKS; i += THREADS) {
        const int pixel = (i + threadIdx.x) / CHUNKS, column = (i + threadIdx.x) % CHUNKS * 8;
        if (first_pixel + pixel < pixels && first_filter + column < g.group_k) {
            half *const to = y + (first_pixel + pixel) * g.k + group * g.group_k + first_filter + column;
            *reinterpret_cast<uint4 *>(to) = *reinterpret_cast<const uint4 *>(results + pixel * PITCH + column);
        }
    }
}

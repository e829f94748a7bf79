// The matrix product of a CBR on tensor cores, NHWC alone: float16 (mma.m16n8k16) and INT8 (mma.m16n8k32).
//
// A fragment's registers come straight from global memory, with no copy in shared memory. In bytes the two types are
// alike: lane 4g + t holds words of row g. A sum does not depend on the order of its products, so both operands may
// take the depth in another order, the same for both: lane t takes 16 bytes side by side, and four lanes 64 bytes of a
// row, which are the depth of two mma. What several warps read twice they find in the L1.
//
// WM × WN: fragments of a warp, of 16 pixels and of 8 filters. WARPS: of a block along the pixels. SLICES: warps with
// the same tile, each with every SLICES-th 64 bytes of the depth (see sliced_tiles.cuh). VEC: bytes of a load, which
// divide the bytes of a pixel's channels, and those from a pixel to the next.
#pragma once
#include "cbr.cuh"

__device__ __forceinline__ void multiply_add(float (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                             unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void multiply_add(int (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                             unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

template <int WORDS> struct Words;
template <> struct Words<1> { using Type = unsigned; };
template <> struct Words<2> { using Type = uint2; };
template <> struct Words<4> { using Type = uint4; };

// VEC bytes, zeros from a null pointer.
template <int VEC> __device__ __forceinline__ void load(unsigned *to, const char *from) {
    using Vector = typename Words<VEC / 4>::Type;
    const Vector vector = from ? *reinterpret_cast<const Vector *>(from) : Vector{};
#pragma unroll
    for (int i = 0; i < VEC / 4; i++) to[i] = reinterpret_cast<const unsigned *>(&vector)[i];
}

template <class X, int VEC, int WM, int WN, int WARPS, int SLICES> struct Fragments {
    static constexpr int BM = WARPS * WM * 16, BN = WN * 8, THREADS = WARPS * SLICES * 32, LOADS = 16 / VEC;
    int h[WM][2], w[WM][2], offset[WM][2];  // where the windows of the thread's rows begin
    unsigned a[WM][2][4], b[WN][4];

    __device__ __forceinline__ Fragments(int first_pixel, const Cbr &g) {
#pragma unroll
        for (int i = 0; i < WM; i++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int pixel = first_pixel + i * 16 + half * 8 + threadIdx.x % 32 / 4;
                const Window window = window_of(pixel, g);
                h[i][half] = pixel < g.pixels ? window.h : OUTSIDE;
                w[i][half] = window.w;
                offset[i][half] = g.x.at(window.n, 0, window.h, window.w);
            }
        }
    }

    // The lane's words of a step, 64 bytes of the depth.
    __device__ __forceinline__ void load_step(const X *x, const X *filters, int step, int first_filter, const Cbr &g) {
#pragma unroll
        for (int j = 0; j < LOADS; j++) {
            constexpr int EACH = VEC / sizeof(X);
            const int depth = ((step * 4 + threadIdx.x % 4) * LOADS + j) * EACH;
            const int tap = depth / g.c, c = depth - tap * g.c, r = tap / g.s;
            const int right = (tap - r * g.s) * g.dilation_w, down = depth < g.depth ? r * g.dilation_h : OUTSIDE;
            const int further = r * g.dilation_h * g.x.row + right * g.x.column + c;
#pragma unroll
            for (int i = 0; i < WM; i++) {
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const bool inside =
                        unsigned(h[i][half] + down) < unsigned(g.h) && unsigned(w[i][half] + right) < unsigned(g.w);
                    const X *const from = inside ? x + offset[i][half] + further : nullptr;
                    load<VEC>(&a[i][half][j * VEC / 4], reinterpret_cast<const char *>(from));
                }
            }
#pragma unroll
            for (int i = 0; i < WN; i++) {
                const int filter = first_filter + i * 8 + threadIdx.x % 32 / 4;
                const X *const from = filter < g.k && depth < g.depth ? filters + filter * g.depth + depth : nullptr;
                load<VEC>(&b[i][j * VEC / 4], reinterpret_cast<const char *>(from));
            }
        }
    }
};

// The block's tile, through the epilogue. Sum: float for half, int for signed char. Filters lie as K × depth.
template <class X, class Sum, int VEC, int WM, int WN, int WARPS, int SLICES>
__device__ __forceinline__ void sliced_fragments(const X *x, const X *filters, const Cbr &g,
                                                 const Epilogue<X> &epilogue) {
    using F = Fragments<X, VEC, WM, WN, WARPS, SLICES>;
    __shared__ Sum shared[SLICES * F::BM * F::BN];
    const int filter_tiles = (g.k - 1) / F::BN + 1;
    const int first_filter = blockIdx.x % filter_tiles * F::BN, first_pixel = blockIdx.x / filter_tiles * F::BM;
    const int warp = threadIdx.x / 32 % WARPS, slice = threadIdx.x / 32 / WARPS;
    const int steps = (g.depth * int(sizeof(X)) - 1) / 64 + 1;

    Results<F::BM, F::BN, F::THREADS, true, X> written(epilogue, first_filter, first_pixel, g);
    Sum sum[WM][WN][4] = {};
    F next(first_pixel + warp * WM * 16, g);
    next.load_step(x, filters, slice, first_filter, g);
    for (int step = slice; step < steps; step += SLICES) {
        const F now = next;
        if (step + SLICES < steps) next.load_step(x, filters, step + SLICES, first_filter, g);
#pragma unroll
        for (int i = 0; i < WM; i++) {
#pragma unroll
            for (int j = 0; j < WN; j++) {
#pragma unroll
                for (int pair = 0; pair < 4; pair += 2) {
                    multiply_add(sum[i][j], now.a[i][0][pair], now.a[i][1][pair], now.a[i][0][pair + 1],
                                 now.a[i][1][pair + 1], now.b[j][pair], now.b[j][pair + 1]);
                }
            }
        }
    }

    Sum *const results = shared + slice * F::BM * F::BN;
#pragma unroll
    for (int i = 0; i < WM; i++) {
#pragma unroll
        for (int j = 0; j < WN; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int m = (warp * WM + i) * 16 + e / 2 * 8 + threadIdx.x % 32 / 4;
                results[m * F::BN + j * 8 + threadIdx.x % 4 * 2 + e % 2] = sum[i][j][e];
            }
        }
    }
    __syncthreads();
    written.write([&](int m, int n) {
        Sum total = shared[m * F::BN + n];
#pragma unroll
        for (int j = 1; j < SLICES; j++) total += shared[(j * F::BM + m) * F::BN + n];
        return float(total);
    });
}

// The tile loop of the float16 kernels: lab 05's step 4, mma.sync on tiles that cp.async brings in several stages, with
// operands from where a kernel's loaders say. sum = left · right, of BM × depth by depth × BN.
//
// In shared memory a tile lies in lines of 16-byte chunks, exchanged by chunk ^ line % 8, in one of two ways:
//   rows by depth    BM (or BN) lines of 64 deep: the operand has neighbours of the depth side by side
//   depth by rows    64 lines of BM (or BN): it has neighbours of its rows (columns) side by side; ldmatrix transposes
//
// A thread brings the same chunk of several lines. A loader says where these come from:
//   struct Loader {
//       void element(int j);             // what `at` finds next is the chunk's element j
//       const half *at(int i);           // in the i-th of the thread's lines; null where a zero is wanted
//       void advance();                  // goes on to the next 64 deep tile
//   };
#pragma once
#include <cuda_fp16.h>

constexpr int BK = 64;  // depth of the tiles

// BM, BN: rows and columns that a block computes. WM, WN: of a warp. STAGES: pairs of tiles in shared memory, of which
// all but one are loaded while one is used.
template <int BM_, int BN_, int WM_, int WN_, int STAGES_>
struct Shape {
    static constexpr int BM = BM_, BN = BN_, WM = WM_, WN = WN_, STAGES = STAGES_;
    static constexpr int THREADS = BM / WM * (BN / WN) * 32;
    static constexpr unsigned LEFT_BYTES = BM * BK * sizeof(half), STAGE_BYTES = (BM + BN) * BK * sizeof(half);
    static_assert(BM % WM == 0 && BN % WN == 0 && WM % 16 == 0 && WN % 16 == 0, "whole fragments, two on the right");
    static_assert(BM % 64 == 0 && BN % 64 == 0, "lines are all banks, once or more often");
};

// How the threads of a block share the chunks of a tile of `LINES` lines.
template <int LINES, int LINE_CHUNKS, int THREADS>
struct Share {
    static constexpr int STEP = THREADS / LINE_CHUNKS;  // lines that the block brings at a time
    static constexpr int COPIES = LINES / STEP;         // of a thread
    static_assert(STEP % 8 == 0 && LINES % STEP == 0, "a thread brings equally many chunks, of lines swizzled alike");

    __device__ __forceinline__ static int line() { return threadIdx.x / LINE_CHUNKS; }
    __device__ __forceinline__ static int chunk() { return threadIdx.x % LINE_CHUNKS; }
};

// Starts a copy of 16 bytes to shared memory, zeros instead unless `inside`.
__device__ __forceinline__ void copy(unsigned to, const half *from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0));
}

__device__ __forceinline__ void store(unsigned to, half value) {
    asm volatile("st.shared.b16 [%0], %1;" ::"r"(to), "h"(__half_as_ushort(value)) : "memory");
}

// Brings a thread's chunks of a tile. VECTORS: whole chunks lie side by side in global memory, at multiples of 16
// bytes; else each element is read by itself. `anywhere`: an address to give where nothing is read.
template <class Shared, int LINE_CHUNKS, bool VECTORS, class Loader>
__device__ __forceinline__ void bring(unsigned tile, const half *anywhere, Loader &loader) {
    const unsigned to = tile + (Shared::line() * LINE_CHUNKS + (Shared::chunk() ^ (Shared::line() % 8))) * 16;
#pragma unroll 1
    for (int j = 0; j < (VECTORS ? 1 : 8); j++) {
        loader.element(j);
#pragma unroll
        for (int i = 0; i < Shared::COPIES; i++) {
            const unsigned there = to + i * Shared::STEP * LINE_CHUNKS * 16 + j * 2;
            const half *const from = loader.at(i);
            if (VECTORS) {
                copy(there, from ? from : anywhere, from);
            } else {
                store(there, from ? *from : half(0));
            }
        }
    }
    loader.advance();
}

// Four matrices of 8 × 8 elements; lane 8i + j gives the address of row j of matrix i.
template <bool TRANSPOSED>
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], unsigned address) {
    if (TRANSPOSED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(address)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(address)
                     : "memory");
    }
}

// sum += a · b for 16 × 16 by 16 × 8.
__device__ __forceinline__ void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Row and column of the block's tile where the warp's begins.
template <class S>
__device__ __forceinline__ int warp_row() {
    return threadIdx.x / 32 / (S::BN / S::WN) * S::WM;
}

template <class S>
__device__ __forceinline__ int warp_column() {
    return threadIdx.x / 32 % (S::BN / S::WN) * S::WN;
}

// The fragments of one operand: `COUNT` of 16 rows (left) or 16 columns (right), from row or column `first` of the tile
// on, whose lines hold `WIDTH` elements in the second way.
template <bool LEFT, bool DEPTH_BY_ROWS, int WIDTH, int COUNT>
struct Fragments {
    static constexpr int LINE_CHUNKS = DEPTH_BY_ROWS ? WIDTH / 8 : BK / 8;
    unsigned at;  // what this lane gives ldmatrix for the first fragment

    __device__ __forceinline__ Fragments(unsigned tile, int first) {
        const int lane = threadIdx.x % 32;
        // Which of four matrices the lane gives a row of: lower or upper eight rows, first or second eight of the
        // depth. mma.sync wants the left operand's rows to change first, and the right one's depth.
        const int upper = LEFT ? lane / 8 % 2 : lane / 16, deeper = LEFT ? lane / 16 : lane / 8 % 2;
        const int line = DEPTH_BY_ROWS ? deeper * 8 + lane % 8 : first + upper * 8 + lane % 8;
        const int chunk = DEPTH_BY_ROWS ? first / 8 + upper : deeper;
        at = tile + (line * LINE_CHUNKS + (chunk ^ (line % 8))) * 16;
    }

    // Those of the i-th 16 of the depth. Going on by 16 within a line flips bits of the chunk's number, and so of the
    // address; going on by 16 lines adds.
    __device__ __forceinline__ void load(unsigned (&to)[COUNT][4], unsigned stage, int i) const {
#pragma unroll
        for (int r = 0; r < COUNT; r++) {
            const int lines = (DEPTH_BY_ROWS ? i : r) * 16, flip = (DEPTH_BY_ROWS ? r : i) * 32;
            load_matrices<DEPTH_BY_ROWS>(to[r], ((at + stage) ^ flip) + lines * LINE_CHUNKS * 16);
        }
    }
};

// sum += left · right over `tiles` tiles. `bring_tiles(address)` starts the copies of the next pair to a stage there.
template <class S, bool LEFT_DEPTH_BY_ROWS, bool RIGHT_DEPTH_BY_ROWS, class Bring>
__device__ __forceinline__ void multiply_tiles(unsigned shared, int tiles, Bring bring_tiles,
                                               float (&sum)[S::WM / 16][S::WN / 8][4]) {
    const Fragments<true, LEFT_DEPTH_BY_ROWS, S::BM, S::WM / 16> left(shared, warp_row<S>());
    const Fragments<false, RIGHT_DEPTH_BY_ROWS, S::BN, S::WN / 16> right(shared + S::LEFT_BYTES, warp_column<S>());
    unsigned a[2][S::WM / 16][4], b[2][S::WN / 16][4];  // b: both halves along the depth of two fragments of 8 columns
    auto load = [&](int stage, int i, int into) {
        left.load(a[into], stage * S::STAGE_BYTES, i);
        right.load(b[into], stage * S::STAGE_BYTES, i);
    };
#pragma unroll
    for (int i = 0; i < S::STAGES - 1; i++) {
        if (i < tiles) {
            bring_tiles(shared + i * S::STAGE_BYTES);
        }
        asm volatile("cp.async.commit_group;");
    }
    asm volatile("cp.async.wait_group %0;" ::"n"(S::STAGES - 2) : "memory");
    __syncthreads();
    load(0, 0, 0);
    for (int tile = 0, now = 0, next = S::STAGES - 1; tile < tiles; tile++) {
#pragma unroll
        for (int i = 0; i < BK / 16; i++) {
            if (i < BK / 16 - 1) {
                load(now, i + 1, (i + 1) % 2);
            } else {
                asm volatile("cp.async.wait_group %0;" ::"n"(S::STAGES - 2) : "memory");
                __syncthreads();
                if (tile + 1 < tiles) {
                    now = now == S::STAGES - 1 ? 0 : now + 1;
                }
                load(now, 0, 0);
            }
            if (i == 0) {
                if (tile + S::STAGES - 1 < tiles) {
                    bring_tiles(shared + next * S::STAGE_BYTES);
                }
                asm volatile("cp.async.commit_group;");
                next = next == S::STAGES - 1 ? 0 : next + 1;
            }
#pragma unroll
            for (int r = 0; r < S::WM / 16; r++) {
#pragma unroll
                for (int s = 0; s < S::WN / 8; s++) {
                    multiply_add(sum[r][s], a[i % 2][r], b[i % 2][s / 2][s % 2 * 2], b[i % 2][s / 2][s % 2 * 2 + 1]);
                }
            }
        }
    }
}

// Column of the block's tile of the thread's sums sum[…][s][0] and, beside it, sum[…][s][1].
template <class S>
__device__ __forceinline__ int column_of(int s) {
    return warp_column<S>() + 8 * s + threadIdx.x % 4 * 2;
}

// Row of sum[r][…][2 * h] and sum[r][…][2 * h + 1].
template <class S>
__device__ __forceinline__ int row_of(int r, int h) {
    return warp_row<S>() + 16 * r + 8 * h + threadIdx.x % 32 / 4;
}

// Writes the block's sums, rounded, to an array of pixels in NHWC. `to`: the element of the tile's first row and
// column; `pitch`: elements from a pixel to the next; `rows`, `columns`: of the tile, as far as they are in the array.
// `bias`: for the tile's columns, or null. Results pass through shared memory, so that a warp writes whole rows of the
// tile, where they allow it 16 bytes at a time.
template <class S>
__device__ __forceinline__ void write_pixels(const float (&sum)[S::WM / 16][S::WN / 8][4], uint4 *memory, half *to,
                                             int pitch, int rows, int columns, const float *bias, bool relu) {
    constexpr int LINE = S::BN + 8;    // of results in shared memory: eight more, for lanes in eight rows
    constexpr int CHUNKS = S::BN / 8;  // of 16 bytes, in a row of the tile
    static_assert(S::BM * LINE * sizeof(half) <= S::STAGES * S::STAGE_BYTES, "the results fit in place of the tiles");
    half *const results = reinterpret_cast<half *>(memory);
    __syncthreads();  // all have read their last fragments
#pragma unroll
    for (int s = 0; s < S::WN / 8; s++) {
        const int column = column_of<S>(s);
        const float bias0 = bias && column < columns ? bias[column] : 0;
        const float bias1 = bias && column + 1 < columns ? bias[column + 1] : 0;
#pragma unroll
        for (int r = 0; r < S::WM / 16; r++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const float v0 = sum[r][s][2 * h] + bias0, v1 = sum[r][s][2 * h + 1] + bias1;
                *reinterpret_cast<half2 *>(results + row_of<S>(r, h) * LINE + column) =
                    __floats2half2_rn(relu && v0 < 0 ? 0 : v0, relu && v1 < 0 ? 0 : v1);
            }
        }
    }
    __syncthreads();
    if (columns % 8 == 0 && pitch % 8 == 0 && reinterpret_cast<size_t>(to) % 16 == 0) {
#pragma unroll
        for (int i = 0; i < S::BM * CHUNKS; i += S::THREADS) {
            const int row = (i + threadIdx.x) / CHUNKS, column = (i + threadIdx.x) % CHUNKS * 8;
            if (row < rows && column < columns) {
                *reinterpret_cast<uint4 *>(to + size_t(row) * pitch + column) =
                    *reinterpret_cast<const uint4 *>(results + row * LINE + column);
            }
        }
        return;
    }
#pragma unroll 1
    for (int i = threadIdx.x; i < S::BM * S::BN; i += S::THREADS) {
        const int row = i / S::BN, column = i % S::BN;
        if (row < rows && column < columns) {
            to[size_t(row) * pitch + column] = results[row * LINE + column];
        }
    }
}

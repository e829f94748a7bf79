// What the kernels with mma.sync share: sizes, tiles in shared memory, fragments of float16 or bfloat16.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math_constants.h>

using bfloat16 = __nv_bfloat16;
constexpr float LOG2E = 1.4426950408889634f, LN2 = 0.6931471805599453f;

// Of arrays (heads, length, size), the batch counted with the heads.
struct Shape {
    int queries, keys;
    int shared_by;  // query heads for a head of keys and values
    int further;    // a query sees keys up to its own place and this: keys - queries where causal, else keys
    float scale;
};

// Within 2^-22 of 2^x; 0 for what float32 has no normal number for.
__device__ __forceinline__ float power_of_2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Two numbers as a word of a fragment.
__device__ __forceinline__ unsigned packed(float x, float y, half) {
    const half2 both = __floats2half2_rn(x, y);
    return *reinterpret_cast<const unsigned *>(&both);
}

__device__ __forceinline__ unsigned packed(float x, float y, bfloat16) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(x, y);
    return *reinterpret_cast<const unsigned *>(&both);
}

// sum += a · b for 16 × 16 by 16 × 8. A lane holds of row lane / 4, and of the row eight below, columns
// lane % 4 · 2 and the next: sum[0], sum[1] and, below, sum[2], sum[3]. The last argument only says the type.
#define MULTIPLY_ADD(T, TYPE)                                                                                     \
    __device__ __forceinline__ void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, \
                                                 T) {                                                             \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 {%0, %1, %2, %3}, "             \
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                              \
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                     \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                             \
    }
MULTIPLY_ADD(half, "f16")
MULTIPLY_ADD(bfloat16, "bf16")
#undef MULTIPLY_ADD

// Two fragments of sums, 16 × 16, as the left factor of the next product: the lanes hold what they must hold already.
template <typename T>
__device__ __forceinline__ void as_factor(unsigned (&a)[4], const float (&left)[4], const float (&right)[4]) {
    a[0] = packed(left[0], left[1], T()), a[1] = packed(left[2], left[3], T());
    a[2] = packed(right[0], right[1], T()), a[3] = packed(right[2], right[3], T());
}

// ROWS rows of a matrix in shared memory. Eight elements of padding make an odd number of chunks of 16 bytes from one
// row to the next, so that the eight rows of a matrix of ldmatrix lie in different banks.
template <typename T, int ROWS, int SIZE, int THREADS>
struct Tile {
    static constexpr int PITCH = SIZE + 8, CHUNKS = SIZE / 8;
    static constexpr int BYTES = ROWS * PITCH * 2;
    static_assert(SIZE % 16 == 0, "whole fragments, and an odd number of chunks with the padding");
    unsigned start;

    // Starts copies of rows `first` to `first` + ROWS of `rows`; zeros past the end.
    __device__ __forceinline__ void copy(const T *from, int first, int rows) const {
        for (int i = threadIdx.x % THREADS; i < ROWS * CHUNKS; i += THREADS) {
            const int row = i / CHUNKS, column = i % CHUNKS * 8, inside = first + row < rows;
            asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(start + (row * PITCH + column) * 2),
                         "l"(from + (inside ? size_t(first + row) * SIZE + column : 0)), "r"(inside ? 16 : 0)
                         : "memory");
        }
    }

    // Four matrices of 8 × 8 elements, 16 × 16 from `row` and `column` on, as a left factor.
    __device__ __forceinline__ void left(unsigned (&to)[4], int row, int column) const {
        load(to, row + threadIdx.x % 16, column + threadIdx.x % 32 / 16 * 8);
    }

    // Right factors of two products: words 0, 1 of columns that are rows `row` to `row` + 8 of the tile, words 2, 3 of
    // the next 8; 16 deep along the tile's rows.
    __device__ __forceinline__ void right(unsigned (&to)[4], int row, int depth) const {
        load(to, row + threadIdx.x % 8 + threadIdx.x % 32 / 16 * 8, depth + threadIdx.x % 16 / 8 * 8);
    }

    // The same of the tile's own columns, 16 deep along its columns: ldmatrix turns the matrices.
    __device__ __forceinline__ void right_turned(unsigned (&to)[4], int depth, int column) const {
        const int row = depth + threadIdx.x % 16;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(start + (row * PITCH + column + threadIdx.x % 32 / 16 * 8) * 2));
    }

    __device__ __forceinline__ void load(unsigned (&to)[4], int row, int column) const {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(start + (row * PITCH + column) * 2));
    }
};

__device__ __forceinline__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits for the thread's copies but those of the latest N groups.
template <int N>
__device__ __forceinline__ void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// Over the four lanes that hold a row of a fragment.
__device__ __forceinline__ float row_sum(float x) {
    x += __shfl_xor_sync(0xffffffff, x, 1);
    return x + __shfl_xor_sync(0xffffffff, x, 2);
}

__device__ __forceinline__ float row_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}

// Products whose rows TMA cannot copy, without the copy to wider rows that step 7 makes first: pad.cu takes 3 µs of a
// launch, as long as a small product, and two more passes over a large matrix of which each element is used once.
// Four warps load words of two elements into registers, shift them into place (words.cuh), store them to shared memory,
// 64 deep, and multiply by mma.sync while they load the next. Each such step waits for memory, so SLICES times four warps
// of a block take steps in turns, and the first four add up the sums of all, in order.
// Reached: 5.1 to 5.7 µs for products of at most 800,000 multiply-adds, one step deep, of which 3.6 are the launch; step 7
// with the copy took 8.4, the library takes 4.4 to 4.9. Each further step takes 2.7 µs, so that from a depth of some 200
// on the copy is faster (H100 80GB HBM3, 2026-11-25).
// Tried and left out: half the instructions for words away from the edges, which gained nothing; tiles of 64 × 64.
// RESULT: type of C. A block is 128 × SLICES threads and computes BM × BN.
#include "words.cuh"

constexpr int BM = 32, BN = 32, BK = 64, THREADS = 128;  // THREADS: of a slice
constexpr int A_PITCH = BK + 8, B_PITCH = BN + 8;  // elements; with 16 bytes more, eight rows lie in different banks
constexpr int WM = BM / 2, WN = BN / 2;            // of a warp
constexpr int A_CHUNKS = BM * BK / 8 / THREADS, B_CHUNKS = BK * BN / 8 / THREADS;  // of 16 bytes, of a thread
static_assert(WM % 16 == 0 && WN % 16 == 0, "whole fragments, two of B at a time");

// Four matrices of 8 × 8 elements; lane 8i + j gives the address of row j of matrix i.
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], const half *from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(unsigned(__cvta_generic_to_shared(from)))
                 : "memory");
}

__device__ __forceinline__ void load_transposed(unsigned (&to)[4], const half *from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(unsigned(__cvta_generic_to_shared(from)))
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

__device__ __forceinline__ void store2(float *to, float x, float y) {
    *reinterpret_cast<float2 *>(to) = make_float2(x, y);
}

__device__ __forceinline__ void store2(half *to, float x, float y) {
    *reinterpret_cast<half2 *>(to) = __floats2half2_rn(x, y);
}

extern "C" __global__ void __launch_bounds__(THREADS * SLICES)
    tensor_core_any_rows(const half *a, const half *b, RESULT *c, int m, int n, int k) {
    __shared__ __align__(16) half a_tiles[SLICES][BM * A_PITCH], b_tiles[SLICES][BK * B_PITCH];
    half *const a_tile = a_tiles[threadIdx.y], *const b_tile = b_tiles[threadIdx.y];
    const int width = (n - 1) / BN + 1, steps = (k - 1) / BK + 1;
    const int first_row = blockIdx.x / width * BM, first_column = blockIdx.x % width * BN;
    const half *const a_end = a + size_t(m) * k, *const b_end = b + size_t(k) * n;

    uint4 of_a[A_CHUNKS], of_b[B_CHUNKS];
    auto load = [&](int depth) {
#pragma unroll
        for (int i = 0; i < A_CHUNKS; i++) {
            const int at = threadIdx.x + i * THREADS, row = first_row + at / 8, column = depth + at % 8 * 8;
            of_a[i] = eight(a + size_t(row) * k + column, row < m ? k - column : 0, a_end);
        }
#pragma unroll
        for (int i = 0; i < B_CHUNKS; i++) {
            const int at = threadIdx.x + i * THREADS, row = depth + at / (BN / 8);
            const int column = first_column + at % (BN / 8) * 8;
            of_b[i] = eight(b + size_t(row) * n + column, row < k ? n - column : 0, b_end);
        }
    };
    auto keep = [&]() {
#pragma unroll
        for (int i = 0; i < A_CHUNKS; i++) {
            const int at = threadIdx.x + i * THREADS;
            *reinterpret_cast<uint4 *>(a_tile + at / 8 * A_PITCH + at % 8 * 8) = of_a[i];
        }
#pragma unroll
        for (int i = 0; i < B_CHUNKS; i++) {
            const int at = threadIdx.x + i * THREADS;
            *reinterpret_cast<uint4 *>(b_tile + at / (BN / 8) * B_PITCH + at % (BN / 8) * 8) = of_b[i];
        }
    };

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, y = warp / 2 * WM, x = warp % 2 * WN;
    float sum[WM / 16][WN / 8][4] = {};
    load(threadIdx.y * BK);
    for (int step = threadIdx.y; step < steps + int(threadIdx.y); step += SLICES) {  // equally often in all slices
        keep();
        __syncthreads();
        load((step + SLICES) * BK);
#pragma unroll
        for (int depth = 0; depth < BK; depth += 16) {
            unsigned a_part[WM / 16][4], b_part[WN / 16][4];
#pragma unroll
            for (int i = 0; i < WM / 16; i++) {
                load_matrices(a_part[i], a_tile + (y + 16 * i + lane % 16) * A_PITCH + depth + lane / 16 * 8);
            }
#pragma unroll
            for (int i = 0; i < WN / 16; i++) {
                load_transposed(b_part[i], b_tile + (depth + lane % 16) * B_PITCH + x + 16 * i + lane / 16 * 8);
            }
#pragma unroll
            for (int i = 0; i < WM / 16; i++) {
#pragma unroll
                for (int j = 0; j < WN / 8; j++) {
                    multiply_add(sum[i][j], a_part[i], b_part[j / 2][j % 2 * 2], b_part[j / 2][j % 2 * 2 + 1]);
                }
            }
        }
        __syncthreads();
    }
    if constexpr (SLICES > 1) {
        constexpr int SUMS = WM / 16 * (WN / 8) * 4;
        static_assert(sizeof(float) * THREADS * SUMS <= sizeof(b_tiles[0]), "sums fit where a slice's tile of B was");
        float *const all = &sum[0][0][0];
        if (threadIdx.y > 0) {
#pragma unroll
            for (int i = 0; i < SUMS; i++) {
                reinterpret_cast<float *>(b_tile)[i * THREADS + threadIdx.x] = all[i];
            }
        }
        __syncthreads();
        if (threadIdx.y > 0) {
            return;
        }
#pragma unroll
        for (int i = 0; i < SUMS; i++) {
#pragma unroll
            for (int slice = 1; slice < SLICES; slice++) {
                all[i] += reinterpret_cast<const float *>(b_tiles[slice])[i * THREADS + threadIdx.x];
            }
        }
    }

    // Of each 16 × 8 elements, a lane holds two of row lane / 4 and two of the row eight below.
    const bool pairs = n % 2 == 0 && (unsigned long long)c % (2 * sizeof(RESULT)) == 0;
#pragma unroll
    for (int i = 0; i < WM / 16; i++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int row = first_row + y + 16 * i + 8 * h + lane / 4;
#pragma unroll
            for (int j = 0; j < WN / 8; j++) {
                const int column = first_column + x + 8 * j + lane % 4 * 2;
                RESULT *const to = c + size_t(row) * n + column;
                if (row < m && column < n && pairs) {
                    store2(to, sum[i][j][2 * h], sum[i][j][2 * h + 1]);
                } else if (row < m && column < n) {
                    to[0] = sum[i][j][2 * h];
                    if (column + 1 < n) {
                        to[1] = sum[i][j][2 * h + 1];
                    }
                }
            }
        }
    }
}

// Products whose rows TMA cannot copy, without the copy to wider rows that step 7 makes first: pad.cu takes 3 µs of a
// launch, as long as a small product, and two more passes over a large matrix of which each element is used once.
// Rows of any length start at any element, and cp.async copies four bytes from a multiple of four. So a line of a tile is
// copied from the word on that its first element lies in, and lies in shared memory one element further where that is the
// word's second one: fragments of A are shifted into place as they are read, elements of B are read one by one. STAGES
// steps are on their way at a time, so that the memory is waited for once.
// Each of four warps multiplies 16 of a step's depth by mma.sync for the whole tile, and SPLIT blocks of a cluster share
// the depth of a tile; sums are added in the order of the warps, then of the blocks, in every run.
// Reached: 5.1 µs for one step, of which 3.6 are the launch, and 0.4 µs for each further one; with copies through
// registers each took 2.7 µs. 20 × 3663 × 7013, of which every element of B is used once, takes 31 µs, step 7 with the
// copy to wider rows 63, the library 48. Addresses were most of the work at first: computed for each word anew they took
// 47 µs (H100 80GB HBM3, 2026-11-26). Where one step is all, a block has shared memory for one, and more blocks fit:
// 1819 × 356 × 27 takes 7.4 µs, 9.3 before (H200, 2026-11-27).
// Of a shallow product the results are most of the work, and each of four warps' sums of the whole tile went through
// shared memory, and element by element to C: where CONSUMERS is 4, each warp has a quarter of the tile instead, and all of
// the depth, and C is stored 16 bytes at a time. 5856 × 5292 × 23 takes 47.5 µs, 53.5 by step 7, the library 48.0; 751 × 1078 ×
// 23 6.7, 7.8 and 6.7; 2794 × 4309 × 22 22.6, 29.0 and 20.7 (H200). Stored element by element the first took 66.7, the last 29.8
// (H100, 2026-11-27).
// RESULT: type of C. A block computes BM × BN.
#include <cuda_fp16.h>
#include <warplab/hopper.cuh>

constexpr int WARPS = 4, THREADS = 32 * WARPS, BK = 16 * WARPS, STAGES = 6;
// Words of a line, with one more for a line that starts at an odd element; eight lines of A, or every second of eight of
// B, lie in different banks.
constexpr int A_PITCH = BK / 2 + 4, B_PITCH = BN / 2 + 4, C_PITCH = BN + 8;
constexpr int A_BYTES = 4 * BM * A_PITCH, STAGE_BYTES = A_BYTES + 4 * BK * B_PITCH;
constexpr int OWN = BM * BN / SPLIT;  // sums that a block of a cluster adds up
constexpr bool SPREAD = CONSUMERS == WARPS;                            // warps over the tile, not over the depth
constexpr int DOWN = SPREAD ? 2 : 1, ACROSS = SPREAD ? 2 : 1;           // warps of a tile
constexpr int WM = BM / DOWN, WN = BN / ACROSS;                         // rows and columns of a warp
static_assert(SPLIT == 1 || !SPREAD, "a cluster shares the depth");
static_assert(WM % 16 == 0 && BM % 16 == 0 && THREADS % (BN / 2) == 0, "whole fragments, and whole lines for all threads");

#if SPLIT > 1
#define IN_CLUSTERS __cluster_dims__(SPLIT, 1, 1)
#else
#define IN_CLUSTERS
#endif

__device__ __forceinline__ void copy_word(unsigned to, const half *from, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// Copies a tile of LINES lines of WORDS words to shared memory: elements `first` and on of lines `first_line` and on of a
// matrix of `lines` lines of `length` elements, with zeros for what is outside of it. A thread copies the same word of
// every AT_ONCE-th line, an even number, so that all of its lines start at an odd element or none. WHOLE: what follows a
// line's last element is in the matrix, too, and may be copied with it; INSIDE: all lines are in it.
template <int LINES, int WORDS, int PITCH, bool WHOLE, bool INSIDE>
__device__ __forceinline__ void copy_tile(unsigned to, const half *from, int first_line, int lines, int first,
                                          int length) {
    constexpr int AT_ONCE = THREADS / WORDS;
    const int line = threadIdx.x / WORDS, word = threadIdx.x % WORDS;
    auto bytes = [&](int of_line, int left) {
        const bool inside = (INSIDE || first_line + of_line < lines) && left > 0;
        return inside ? WHOLE ? 4 : 2 * min(left, 2) : 0;
    };
    const size_t start = size_t(first_line + line) * length + first;
    const int odd = start % 2, left = length - first - 2 * word + odd;
    const half *of = from + (start - odd) + 2 * word;
#pragma unroll
    for (int i = 0; i < LINES; i += AT_ONCE) {
        copy_word(to + 4 * ((line + i) * PITCH + word), of, bytes(line + i, left));
        of += size_t(AT_ONCE) * length;
    }
    if (length % 2 && threadIdx.x < LINES) {  // the last word of a line that starts at an odd element
        const size_t last = size_t(first_line + threadIdx.x) * length + first;
        if (last % 2) {
            copy_word(to + 4 * (threadIdx.x * PITCH + WORDS), from + (last - 1) + 2 * WORDS,
                      bytes(threadIdx.x, length - first - 2 * WORDS + 1));
        }
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

extern "C" __global__ void IN_CLUSTERS __launch_bounds__(THREADS)
    tensor_core_any_rows(const half *a, const half *b, RESULT *c, int m, int n, int k) {
    extern __shared__ __align__(16) unsigned char memory[];
    const int tile = blockIdx.x / SPLIT, split = blockIdx.x % SPLIT;
    const int width = (n - 1) / BN + 1, steps = (k - 1) / BK + 1;
    const int begin = (long long)steps * split / SPLIT, end = (long long)steps * (split + 1) / SPLIT;
    const int first_row = tile / width * BM, first_column = tile % width * BN;
    auto copy = [&](int step, int stage) {
        if (step < end) {
            const unsigned to = shared_address(memory) + stage * STAGE_BYTES;
            if (step < steps - 1) {
                copy_tile<BM, BK / 2, A_PITCH, true, false>(to, a, first_row, m, step * BK, k);
                copy_tile<BK, BN / 2, B_PITCH, true, true>(to + A_BYTES, b, step * BK, k, first_column, n);
            } else {
                copy_tile<BM, BK / 2, A_PITCH, false, false>(to, a, first_row, m, step * BK, k);
                copy_tile<BK, BN / 2, B_PITCH, false, false>(to + A_BYTES, b, step * BK, k, first_column, n);
            }
        }
        asm volatile("cp.async.commit_group;");
    };

    // Of each 16 × 16 of A, a lane holds pairs along a line in rows g and g + 8, of each 16 × 8 of B pairs of column g.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const int a_odd = g & k & 1, b_odd = n & 1;  // how far lines are shifted: of B those of odd rows
    const int top = SPREAD ? warp / ACROSS * WM : 0, left = SPREAD ? warp % ACROSS * WN : 0;
    float sum[WM / 16][WN / 8][4] = {};
    for (int step = begin + 1 - STAGES, stage = 0, next = 0; step < end; step++) {  // so many steps ahead
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        copy(step + STAGES - 1, next);
        next = next == STAGES - 1 ? 0 : next + 1;
        if (step < begin) {
            continue;
        }
        const int of_step = SPREAD ? min(WARPS, (k - step * BK - 1) / 16 + 1) : 1;  // sixteens of depth
        for (int of = 0; of < of_step; of++) {
            const int slice = SPREAD ? of : warp;
            const unsigned *const words =
                reinterpret_cast<const unsigned *>(memory + stage * STAGE_BYTES) + top * A_PITCH + slice * 8 + t;
            const unsigned short *const elements =
                reinterpret_cast<const unsigned short *>(memory + stage * STAGE_BYTES + A_BYTES) +
                (slice * 16 + 2 * t) * 2 * B_PITCH + left + g;
            unsigned a_part[WM / 16][4];
#pragma unroll
            for (int i = 0; i < WM / 16; i++) {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const unsigned *const at = words + (16 * i + j % 2 * 8 + g) * A_PITCH + j / 2 * 4;
                    a_part[i][j] = __funnelshift_r(at[0], a_odd ? at[1] : 0, 16 * a_odd);
                }
            }
#pragma unroll
            for (int j = 0; j < WN / 8; j++) {
                auto pair = [&](int row) {
                    const unsigned short *const at = elements + row * 2 * B_PITCH + 8 * j;
                    return at[0] | unsigned(at[2 * B_PITCH + b_odd]) << 16;
                };
                const unsigned b0 = pair(0), b1 = pair(8);
#pragma unroll
                for (int i = 0; i < WM / 16; i++) {
                    multiply_add(sum[i][j], a_part[i], b0, b1);
                }
            }
        }
        stage = stage == STAGES - 1 ? 0 : stage + 1;
    }

    __syncthreads();
    if constexpr (SPREAD) {
        // A row starts as far from a multiple of 16 bytes as in C, so that all but its ends are stored 16 bytes at a time.
        constexpr int EACH = 16 / sizeof(RESULT);
        RESULT *const results = reinterpret_cast<RESULT *>(memory), *const corner = c + size_t(first_row) * n + first_column;
        const int rows = min(BM, m - first_row), columns = min(BN, n - first_column);
        auto shift = [&](int row) { return int((reinterpret_cast<size_t>(corner) / sizeof(RESULT) + size_t(row) * n) % EACH); };
#pragma unroll
        for (int i = 0; i < WM / 16; i++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int row = top + 16 * i + 8 * h + g;
                RESULT *const to = results + row * C_PITCH + shift(row) + left + 2 * t;
#pragma unroll
                for (int j = 0; j < WN / 8; j++) {
                    to[8 * j] = sum[i][j][2 * h], to[8 * j + 1] = sum[i][j][2 * h + 1];
                }
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < rows * (BN / EACH); i += THREADS) {
            const int row = i / (BN / EACH), before = shift(row);
            const int column = (EACH - before) % EACH + i % (BN / EACH) * EACH;
            if (column + EACH <= columns) {
                *reinterpret_cast<uint4 *>(corner + size_t(row) * n + column) =
                    *reinterpret_cast<const uint4 *>(results + row * C_PITCH + before + column);
            }
        }
        for (int i = threadIdx.x; i < rows * 2 * EACH; i += THREADS) {  // the ends
            const int row = i / (2 * EACH), end = i % (2 * EACH), before = shift(row), head = (EACH - before) % EACH;
            const int column = end < EACH ? end : head + max(0, (columns - head) / EACH) * EACH + end - EACH;
            if (column < (end < EACH ? min(head, columns) : columns)) {
                corner[size_t(row) * n + column] = results[row * C_PITCH + before + column];
            }
        }
        return;
    }

    // Sums of all warps, and of all blocks behind them.
    float *const sums = reinterpret_cast<float *>(memory), *const sent = sums + WARPS * BM * C_PITCH;
#pragma unroll
    for (int i = 0; i < WM / 16; i++) {
#pragma unroll
        for (int j = 0; j < WN / 8; j++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float *const to = sums + (warp * BM + 16 * i + 8 * h + g) * C_PITCH + 8 * j + 2 * t;
                *reinterpret_cast<float2 *>(to) = make_float2(sum[i][j][2 * h], sum[i][j][2 * h + 1]);
            }
        }
    }
    __syncthreads();
    if constexpr (SPLIT > 1) {
        cluster_sync();  // none has tiles any more where others send
        for (int i = threadIdx.x; i < BM * BN / 4; i += THREADS) {
            float4 v = {};
#pragma unroll
            for (int w = 0; w < WARPS; w++) {
                const float4 of = *reinterpret_cast<const float4 *>(sums + (w * BM + 4 * i / BN) * C_PITCH + 4 * i % BN);
                v.x += of.x, v.y += of.y, v.z += of.z, v.w += of.w;
            }
            store_there(shared_address(sent) + 4 * (split * OWN + 4 * i % OWN), 4 * i / OWN, v);
        }
        cluster_sync();
    }
#pragma unroll 8
    for (int i = threadIdx.x; i < OWN; i += THREADS) {
        const int at = split * OWN + i, row = first_row + at / BN, column = first_column + at % BN;
        float v = 0;
#pragma unroll
        for (int of = 0; of < (SPLIT > 1 ? SPLIT : WARPS); of++) {
            v += SPLIT > 1 ? sent[of * OWN + i] : sums[(of * BM + at / BN) * C_PITCH + at % BN];
        }
        if (row < m && column < n) {
            c[size_t(row) * n + column] = v;
        }
    }
}

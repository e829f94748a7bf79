// 3. One kernel on tensor cores: mma.sync, FlashAttention 2's way (Dao, 2023, arXiv 2307.08691).
// Changed from step 2, in float16 or bfloat16: scores and output stay in the fragments of a warp, 16 queries for each of
// its ROWS. Two fragments of scores, once exponentiated and rounded, are the left factor of the product with the values:
// the lanes hold already what they must hold, nothing goes through shared memory. While the scores of a tile are
// computed, its values come; while these are used, the next keys.
// A fragment of keys or values that comes from shared memory is used for all rows of the warp: with 16 queries for each
// warp shared memory, 128 bytes per cycle, would limit the rate, not the tensor cores.
// Expected: 4 · queries · keys · size operations at the rate of mma.sync (step 4 of lab 05), less what the exponentials
// and the maxima take, which nothing overlaps but other warps.
// On an H200: 0.91 to 1.01 of FlashAttention 2's speed, heads of 128, lengths from 1k on. ptxas takes all 255 registers,
// and for heads of 64 spills a few words: two blocks at a time.
//
// T: half or bfloat16. SIZE: of a head. KEYS: of a tile. WARPS: of a block. ROWS: fragments of 16 queries of a warp.
// Blocks of late queries, which see most keys, start first.
#include "fragments.cuh"

template <typename T, int SIZE, int KEYS, int WARPS, int ROWS>
__global__ void __launch_bounds__(WARPS * 32)
    attention_mma(const T *__restrict__ q, const T *__restrict__ k, const T *__restrict__ v, T *__restrict__ out,
                  float *__restrict__ lse, Shape g) {
    constexpr int QUERIES = WARPS * ROWS * 16;
    using Queries = Tile<T, QUERIES, SIZE, WARPS * 32>;
    using Keys = Tile<T, KEYS, SIZE, WARPS * 32>;
    extern __shared__ __align__(16) unsigned char memory[];
    const Queries q_tile{unsigned(__cvta_generic_to_shared(memory))};
    const Keys k_tile{q_tile.start + Queries::BYTES}, v_tile{k_tile.start + Keys::BYTES};
    const int head = blockIdx.y, lane = threadIdx.x % 32, of_warp = threadIdx.x / 32 * ROWS * 16;
    const int first_query = (gridDim.x - 1 - blockIdx.x) * QUERIES;
    const int row = first_query + of_warp + lane / 4;  // the lane's first; others are eight, 16, 24 … below
    k += size_t(head / g.shared_by) * g.keys * SIZE;
    v += size_t(head / g.shared_by) * g.keys * SIZE;

    const float to_log2 = g.scale * LOG2E;  // 2^(score · to_log2) is exp(score · scale)
    float result[ROWS][SIZE / 8][4] = {}, largest[2 * ROWS], sum[2 * ROWS] = {};
#pragma unroll
    for (int h = 0; h < 2 * ROWS; h++) largest[h] = -CUDART_INF_F;
    const int end = min(g.keys, first_query + QUERIES + g.further);  // the block sees no key from here on
    q_tile.copy(q + size_t(head) * g.queries * SIZE, first_query, g.queries);
    k_tile.copy(k, 0, g.keys);
    copies_commit();
    for (int first = 0; first < end; first += KEYS) {
        copies_wait<0>();
        __syncthreads();  // the keys are here, and all have used the values before
        v_tile.copy(v, first, g.keys);
        copies_commit();
        float p[ROWS][KEYS / 8][4] = {};
#pragma unroll
        for (int i = 0; i < SIZE / 16; i++) {
            unsigned of_q[ROWS][4];
#pragma unroll
            for (int m = 0; m < ROWS; m++) q_tile.left(of_q[m], of_warp + m * 16, i * 16);
#pragma unroll
            for (int j = 0; j < KEYS / 8; j += 2) {
                unsigned of_k[4];
                k_tile.right(of_k, j * 8, i * 16);
#pragma unroll
                for (int m = 0; m < ROWS; m++) {
                    multiply_add(p[m][j], of_q[m], of_k[0], of_k[1], T());
                    multiply_add(p[m][j + 1], of_q[m], of_k[2], of_k[3], T());
                }
            }
        }
        copies_wait<0>();
        __syncthreads();  // the values are here, and all have used the keys
        if (first + KEYS < end) {
            k_tile.copy(k, first + KEYS, g.keys);
            copies_commit();
        }
        const bool all_seen = first + KEYS <= min(g.keys, first_query + g.further + 1);
#pragma unroll
        for (int h = 0; h < 2 * ROWS; h++) {
            float(&p_of)[KEYS / 8][4] = p[h / 2];
            if (!all_seen) {
#pragma unroll
                for (int i = 0; i < KEYS / 4; i++) {
                    const int key = first + i / 2 * 8 + lane % 4 * 2 + i % 2;
                    if (key >= g.keys || key > row + h * 8 + g.further) p_of[i / 2][h % 2 * 2 + i % 2] = -CUDART_INF_F;
                }
            }
            float top = largest[h];
#pragma unroll
            for (int j = 0; j < KEYS / 4; j++) top = fmaxf(top, p_of[j / 2][h % 2 * 2 + j % 2]);
            top = row_max(top);
            const float shift = top == -CUDART_INF_F ? 0 : top * to_log2;  // no key seen yet: all weights are 0
            const float less = power_of_2(largest[h] * to_log2 - shift);
            largest[h] = top, sum[h] *= less;
#pragma unroll
            for (int j = 0; j < SIZE / 4; j++) result[h / 2][j / 2][h % 2 * 2 + j % 2] *= less;
#pragma unroll
            for (int j = 0; j < KEYS / 4; j++) {
                float &weight = p_of[j / 2][h % 2 * 2 + j % 2];
                weight = power_of_2(weight * to_log2 - shift);
                sum[h] += weight;  // the lane's share
            }
        }
#pragma unroll
        for (int i = 0; i < KEYS / 16; i++) {
            unsigned of_p[ROWS][4];
#pragma unroll
            for (int m = 0; m < ROWS; m++) as_factor<T>(of_p[m], p[m][2 * i], p[m][2 * i + 1]);
#pragma unroll
            for (int j = 0; j < SIZE / 8; j += 2) {
                unsigned of_v[4];
                v_tile.right_turned(of_v, i * 16, j * 8);
#pragma unroll
                for (int m = 0; m < ROWS; m++) {
                    multiply_add(result[m][j], of_p[m], of_v[0], of_v[1], T());
                    multiply_add(result[m][j + 1], of_p[m], of_v[2], of_v[3], T());
                }
            }
        }
    }

#pragma unroll
    for (int h = 0; h < 2 * ROWS; h++) {
        const float whole = row_sum(sum[h]), inverse = whole == 0 ? 0 : 1 / whole;
        const int query = row + h * 8;
        if (query >= g.queries) continue;
        T *const to = out + (size_t(head) * g.queries + query) * SIZE + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < SIZE / 8; j++) {
            const float *const both = &result[h / 2][j][h % 2 * 2];
            *reinterpret_cast<unsigned *>(to + j * 8) = packed(both[0] * inverse, both[1] * inverse, T());
        }
        if (lane % 4 == 0) {
            lse[size_t(head) * g.queries + query] = whole == 0 ? -CUDART_INF_F : largest[h] * g.scale + logf(whole);
        }
    }
}

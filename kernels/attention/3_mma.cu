// 3. One kernel on tensor cores: mma.sync, FlashAttention 2's way (Dao, 2023, arXiv 2307.08691).
// Changed from step 2, in float16 or bfloat16: a warp has 16 queries, whose fragments stay in registers, and so do the
// scores and the output. Two fragments of scores, once exponentiated and rounded, are the left factor of the product
// with the values: the lanes hold already what they must hold, nothing goes through shared memory. While the scores of a
// tile are computed, its values come; while these are used, the next keys.
// Expected: 4 · queries · keys · size operations at the rate of mma.sync (step 4 of lab 05), less what the exponentials
// and the maxima take, which nothing overlaps but other warps.
// Right in the simulator; not tried on a GPU yet. ptxas (sm_90) takes 126 registers for heads of 64, 186 of 128, 250 of
// 256, and keeps all in them.
//
// T: half or bfloat16. SIZE: of a head. KEYS: of a tile. WARPS: of a block, 16 queries each. Blocks of late queries,
// which see most keys, start first.
#include "fragments.cuh"

template <typename T, int SIZE, int KEYS, int WARPS>
__global__ void __launch_bounds__(WARPS * 32)
    attention_mma(const T *__restrict__ q, const T *__restrict__ k, const T *__restrict__ v, T *__restrict__ out,
                  float *__restrict__ lse, Shape g) {
    using Keys = Tile<T, KEYS, SIZE, WARPS * 32>;
    extern __shared__ __align__(16) unsigned char memory[];
    const Keys k_tile{unsigned(__cvta_generic_to_shared(memory))}, v_tile{k_tile.start + Keys::BYTES};
    const int head = blockIdx.y, lane = threadIdx.x % 32;
    const int first_query = (gridDim.x - 1 - blockIdx.x) * WARPS * 16;
    const int row = first_query + threadIdx.x / 32 * 16 + lane / 4;  // the lane's first; the second is eight below
    k += size_t(head / g.shared_by) * g.keys * SIZE;
    v += size_t(head / g.shared_by) * g.keys * SIZE;

    unsigned of_q[SIZE / 16][4];
#pragma unroll
    for (int i = 0; i < SIZE / 16; i++) {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            const int query = min(row + w % 2 * 8, g.queries - 1);
            const T *const from = q + (size_t(head) * g.queries + query) * SIZE + i * 16 + w / 2 * 8 + lane % 4 * 2;
            of_q[i][w] = *reinterpret_cast<const unsigned *>(from);
        }
    }

    const float to_log2 = g.scale * LOG2E;  // 2^(score · to_log2) is exp(score · scale)
    float result[SIZE / 8][4] = {}, largest[2] = {-CUDART_INF_F, -CUDART_INF_F}, sum[2] = {};
    const int end = min(g.keys, first_query + WARPS * 16 + g.further);  // the block sees no key from here on
    k_tile.copy(k, 0, g.keys);
    copies_commit();
    for (int first = 0; first < end; first += KEYS) {
        copies_wait<0>();
        __syncthreads();  // the keys are here, and all have used the values before
        v_tile.copy(v, first, g.keys);
        copies_commit();
        float p[KEYS / 8][4] = {};
#pragma unroll
        for (int i = 0; i < SIZE / 16; i++) {
#pragma unroll
            for (int j = 0; j < KEYS / 8; j += 2) {
                unsigned of_k[4];
                k_tile.right(of_k, j * 8, i * 16);
                multiply_add(p[j], of_q[i], of_k[0], of_k[1], T());
                multiply_add(p[j + 1], of_q[i], of_k[2], of_k[3], T());
            }
        }
        copies_wait<0>();
        __syncthreads();  // the values are here, and all have used the keys
        if (first + KEYS < end) {
            k_tile.copy(k, first + KEYS, g.keys);
            copies_commit();
        }
        if (first + KEYS > min(g.keys, first_query + g.further + 1)) {  // not all of the block see all of the tile
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int key = first + j * 8 + lane % 4 * 2 + i % 2;
                    if (key >= g.keys || key > row + i / 2 * 8 + g.further) p[j][i] = -CUDART_INF_F;
                }
            }
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float top = largest[h];
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++) top = fmaxf(top, fmaxf(p[j][2 * h], p[j][2 * h + 1]));
            top = row_max(top);
            const float shift = top == -CUDART_INF_F ? 0 : top * to_log2;  // no key seen yet: all weights are 0
            const float less = power_of_2(largest[h] * to_log2 - shift);
            largest[h] = top, sum[h] *= less;
#pragma unroll
            for (int j = 0; j < SIZE / 8; j++) result[j][2 * h] *= less, result[j][2 * h + 1] *= less;
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++) {
#pragma unroll
                for (int i = 2 * h; i < 2 * h + 2; i++) {
                    p[j][i] = power_of_2(p[j][i] * to_log2 - shift);
                    sum[h] += p[j][i];  // the lane's share
                }
            }
        }
#pragma unroll
        for (int i = 0; i < KEYS / 16; i++) {
            unsigned of_p[4];
            as_factor<T>(of_p, p[2 * i], p[2 * i + 1]);
#pragma unroll
            for (int j = 0; j < SIZE / 8; j += 2) {
                unsigned of_v[4];
                v_tile.right_turned(of_v, i * 16, j * 8);
                multiply_add(result[j], of_p, of_v[0], of_v[1], T());
                multiply_add(result[j + 1], of_p, of_v[2], of_v[3], T());
            }
        }
    }

#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float whole = row_sum(sum[h]), inverse = whole > 0 ? 1 / whole : 0;
        const int query = row + h * 8;
        if (query >= g.queries) continue;
        T *const to = out + (size_t(head) * g.queries + query) * SIZE + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < SIZE / 8; j++) {
            *reinterpret_cast<unsigned *>(to + j * 8) =
                packed(result[j][2 * h] * inverse, result[j][2 * h + 1] * inverse, T());
        }
        if (lane % 4 == 0) {
            lse[size_t(head) * g.queries + query] = whole > 0 ? largest[h] * g.scale + logf(whole) : -CUDART_INF_F;
        }
    }
}

// Backward by recomputation: the weights come again from the scores and the logarithms of their sums, so that nothing of
// the size of the scores was kept (FlashAttention: Dao et al., 2022, arXiv 2205.14135; its second version adds the
// gradients of the queries up with atomics: 2307.08691, section 3.2). Here each block has rows of its own: queries, for
// which it runs over the keys, or keys, for which it runs over the queries. So every sum has one order, and the result
// is the same each time.
//
//     weights p = exp(s - lse)    dp = dout · vᵀ    ds = p (dp - delta), where delta = sum of dout · out along a row
//     dq = scale · ds k           dk = scale · dsᵀ q           dv = pᵀ dout
//
// Rows are the left factor, the others the right one: from keys' point of view scores are turned, and so fit the next
// product again.
// Expected: 7 products in place of the 5 of one pass with atomics: the scores and dp are computed twice.
// Reached (H200, 2026-11-27, 16 heads of 128, 16k tokens, float16): 198 TFLOP/s at a length of 1k, 213 at 8k, causal 168
// and 205; 0.38 to 0.53 of cuDNN's, which has wgmma, and 0.69 to 0.99 of FlashAttention 2's. ptxas 13.0 (sm_90) takes
// 168 registers for rows of queries and all 255 for rows of keys, heads of 128; of 256 the latter spill 756 bytes.
//
// T: half or bfloat16. SIZE: of a head. OTHERS: of a tile. WARPS: of a block, 16 rows each. KEYS: whether rows are keys.
#include "fragments.cuh"

// delta: a warp per row.
template <typename T, int SIZE>
__global__ void attention_delta(const T *__restrict__ out, const T *__restrict__ dout, float *__restrict__ delta,
                                int rows) {
    const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0;
    for (int i = lane; i < SIZE; i += 32) {
        sum += float(out[size_t(row) * SIZE + i]) * float(dout[size_t(row) * SIZE + i]);
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    if (lane == 0) delta[row] = sum;
}

// Rows of a matrix (length, SIZE), from fragments of a warp's 16, times `factor`.
template <typename T, int SIZE>
__device__ __forceinline__ void store(T *to, const float (&sums)[SIZE / 8][4], float factor, int row, int length) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
        if (row + h * 8 >= length) continue;
#pragma unroll
        for (int j = 0; j < SIZE / 8; j++) {
            *reinterpret_cast<unsigned *>(to + size_t(row + h * 8) * SIZE + j * 8 + threadIdx.x % 4 * 2) =
                packed(sums[j][2 * h] * factor, sums[j][2 * h + 1] * factor, T());
        }
    }
}

template <typename T, int SIZE, int OTHERS, int WARPS, bool KEYS>
__global__ void __launch_bounds__(WARPS * 32)
    attention_backward(const T *__restrict__ q, const T *__restrict__ k, const T *__restrict__ v,
                       const T *__restrict__ dout, const float *__restrict__ lse, const float *__restrict__ delta,
                       T *__restrict__ dq, T *__restrict__ dk, T *__restrict__ dv, Shape g) {
    constexpr int ROWS = WARPS * 16, THREADS = WARPS * 32;
    using Rows = Tile<T, ROWS, SIZE, THREADS>;
    using Others = Tile<T, OTHERS, SIZE, THREADS>;
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ float of_query[2][KEYS ? OTHERS : ROWS];  // lse to base 2, and delta
    const Rows first_rows{unsigned(__cvta_generic_to_shared(memory))}, second_rows{first_rows.start + Rows::BYTES};
    const Others first_others{second_rows.start + Rows::BYTES}, second_others{first_others.start + Others::BYTES};
    const int lane = threadIdx.x % 32, warp_row = threadIdx.x / 32 * 16;
    const int length = KEYS ? g.keys : g.queries;                                         // of the rows
    const int first_row = (KEYS ? blockIdx.x : gridDim.x - 1 - blockIdx.x) * ROWS;        // long runs start first
    const int row = first_row + warp_row + lane / 4;                                      // the lane's first
    const int heads = KEYS ? g.shared_by : 1, first_head = blockIdx.y * heads;            // of queries
    const int of_keys = first_head / g.shared_by;
    const size_t rows_at = size_t(blockIdx.y) * length * SIZE, keys_at = size_t(of_keys) * g.keys * SIZE;

    // Others that no row of the block sees, or that see none, are skipped.
    const int begin = KEYS ? max(0, first_row - g.further) / OTHERS * OTHERS : 0;
    const int end = KEYS ? g.queries : min(g.keys, first_row + ROWS + g.further);
    first_rows.copy((KEYS ? k : q) + rows_at, first_row, length);
    second_rows.copy((KEYS ? v : dout) + rows_at, first_row, length);
    copies_commit();
    // A query that sees no key, or none at all: its weights are 2^-inf.
    auto load_of_queries = [&](int head, int first, int count) {
        for (int i = threadIdx.x; i < count; i += THREADS) {
            const size_t at = size_t(head) * g.queries + first + i;
            const bool inside = first + i < g.queries;
            const float sum = inside ? lse[at] : -CUDART_INF_F;
            of_query[0][i] = sum == -CUDART_INF_F ? CUDART_INF_F : sum * LOG2E;
            of_query[1][i] = inside ? delta[at] : 0;
        }
    };
    if (!KEYS) load_of_queries(first_head, first_row, ROWS);

    const float to_log2 = g.scale * LOG2E;
    float first_sums[SIZE / 8][4] = {}, second_sums[KEYS ? SIZE / 8 : 1][4] = {};  // dq, or dk and dv
    for (int head = first_head; head < first_head + heads; head++) {
        const size_t others_at = KEYS ? size_t(head) * g.queries * SIZE : keys_at;
        for (int first = begin; first < end; first += OTHERS) {
            __syncthreads();  // all have used the tiles before
            first_others.copy((KEYS ? q : k) + others_at, first, KEYS ? g.queries : g.keys);
            second_others.copy((KEYS ? dout : v) + others_at, first, KEYS ? g.queries : g.keys);
            copies_commit();
            if (KEYS) load_of_queries(head, first, OTHERS);
            copies_wait<0>();
            __syncthreads();
            float p[OTHERS / 8][4] = {}, ds[OTHERS / 8][4] = {};
#pragma unroll
            for (int i = 0; i < SIZE; i += 16) {
                unsigned a[4], b[4];
                first_rows.left(a, warp_row, i);
#pragma unroll
                for (int j = 0; j < OTHERS / 8; j += 2) {
                    first_others.right(b, j * 8, i);
                    multiply_add(p[j], a, b[0], b[1], T());
                    multiply_add(p[j + 1], a, b[2], b[3], T());
                }
                second_rows.left(a, warp_row, i);
#pragma unroll
                for (int j = 0; j < OTHERS / 8; j += 2) {
                    second_others.right(b, j * 8, i);
                    multiply_add(ds[j], a, b[0], b[1], T());
                    multiply_add(ds[j + 1], a, b[2], b[3], T());
                }
            }
            // Whether all queries here see all keys here: the first query and the last key do.
            const int first_query = KEYS ? first : first_row, past_key = KEYS ? first_row + ROWS : first + OTHERS;
            const bool whole = past_key <= min(g.keys, first_query + g.further + 1);
#pragma unroll
            for (int j = 0; j < OTHERS / 8; j++) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int other = j * 8 + lane % 4 * 2 + i % 2, own = lane / 4 + i / 2 * 8;
                    const int of = KEYS ? other : warp_row + own;
                    float weight = power_of_2(p[j][i] * to_log2 - of_query[0][of]);
                    if (!whole) {
                        const int mine = first_row + warp_row + own, key = KEYS ? mine : first + other;
                        if (key >= g.keys || key > (KEYS ? first + other : mine) + g.further) weight = 0;
                    }
                    p[j][i] = weight;
                    ds[j][i] = weight * (ds[j][i] - of_query[1][of]);
                }
            }
#pragma unroll
            for (int i = 0; i < OTHERS / 16; i++) {
                unsigned a[4], b[4];
                as_factor<T>(a, ds[2 * i], ds[2 * i + 1]);
#pragma unroll
                for (int j = 0; j < SIZE / 8; j += 2) {
                    first_others.right_turned(b, i * 16, j * 8);
                    multiply_add(first_sums[j], a, b[0], b[1], T());
                    multiply_add(first_sums[j + 1], a, b[2], b[3], T());
                }
                if constexpr (KEYS) {
                    as_factor<T>(a, p[2 * i], p[2 * i + 1]);
#pragma unroll
                    for (int j = 0; j < SIZE / 8; j += 2) {
                        second_others.right_turned(b, i * 16, j * 8);
                        multiply_add(second_sums[j], a, b[0], b[1], T());
                        multiply_add(second_sums[j + 1], a, b[2], b[3], T());
                    }
                }
            }
        }
    }
    store<T, SIZE>((KEYS ? dk : dq) + rows_at, first_sums, g.scale, row, length);
    if constexpr (KEYS) store<T, SIZE>(dv + rows_at, second_sums, 1, row, length);
}

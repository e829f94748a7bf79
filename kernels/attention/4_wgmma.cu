// 4. Hopper's own way, FlashAttention 3's (Shah et al., 2024, arXiv 2407.08608): TMA, wgmma, warps with roles.
// Changed: one thread of the first warpgroup loads queries, keys and values by TMA, as far ahead as there are stages; the
// other warpgroups, 64 queries each, multiply by wgmma straight from shared memory. The weights stay in registers, as the
// left factor of the product with the values. The scores of the next keys are asked for before that product, so that
// the softmax of one tile runs while the tensor cores multiply by the values of the tile before.
// Expected: the rate of wgmma (step 6 of lab 05), less what of the softmax is not hidden, and the first and last tile.
// Right in the simulator; not tried on a GPU yet. ptxas keeps all in registers, and warns of no wgmma that it waits for.
//
// TYPE: half or bfloat16. HEAD_SIZE: of a head. KEYS: of a tile. STAGES: tiles of keys, and of values, in shared memory.
// Columns past a head's end come as zeros.
#include <warplab/hopper.cuh>

#include "fragments.cuh"

constexpr int SIZE = HEAD_SIZE;
constexpr int CONSUMERS = 2, THREADS = 128 * (1 + CONSUMERS), QUERIES = 64 * CONSUMERS;
constexpr int BOXES = (SIZE + 63) / 64;  // of 64 columns, side by side
constexpr int Q_BOX = QUERIES * LINE_BYTES, BOX = KEYS * LINE_BYTES, TILE_BYTES = BOXES * BOX;
static_assert(BOXES == 1 || BOXES == 2 || BOXES == 4, "wgmma_held has these widths");
template <typename T>
constexpr int FACTORS_OF = FLOAT16;
template <>
constexpr int FACTORS_OF<bfloat16> = BFLOAT16;
constexpr int FACTORS = FACTORS_OF<TYPE>;

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention_wgmma(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                    const __grid_constant__ TensorMap v_map, TYPE *__restrict__ out, float *__restrict__ lse, Shape g) {
    extern __shared__ unsigned char memory[];
    __shared__ unsigned long long q_full, k_full[STAGES], v_full[STAGES], k_empty[STAGES], v_empty[STAGES];
    const unsigned q_tile = (shared_address(memory) + 1023) / 1024 * 1024;  // the swizzle repeats after 1024 bytes
    const unsigned k_tiles = q_tile + BOXES * Q_BOX, v_tiles = k_tiles + STAGES * TILE_BYTES;
    const int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0), warp = threadIdx.x / 32 % 4;
    const int lane = threadIdx.x % 32;
    const int head = blockIdx.y, first_query = (gridDim.x - 1 - blockIdx.x) * QUERIES;
    const int end = min(g.keys, first_query + QUERIES + g.further);  // the block sees no key from here on
    const int tiles = end > 0 ? (end - 1) / KEYS + 1 : 0;
    if (threadIdx.x == 0) {
        barrier_init(shared_address(&q_full), 1);
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(shared_address(&k_full[stage]), 1);
            barrier_init(shared_address(&v_full[stage]), 1);
            barrier_init(shared_address(&k_empty[stage]), CONSUMERS * 4);  // each warp that reads what is loaded here
            barrier_init(shared_address(&v_empty[stage]), CONSUMERS * 4);
        }
        fence_barrier_init();
    }
    __syncthreads();

    if (group == 0) {
        give_registers<24>();
        if (threadIdx.x == 0 && tiles) {
            barrier_expect(shared_address(&q_full), BOXES * Q_BOX);
            for (int box = 0; box < BOXES; box++) {
                load_box(q_tile + box * Q_BOX, q_map, box * 64, first_query, head, shared_address(&q_full));
            }
            auto load = [&](unsigned to, const TensorMap &map, int tile, unsigned full, unsigned empty) {
                barrier_wait(empty, tile / STAGES % 2 ^ 1);
                barrier_expect(full, TILE_BYTES);
                for (int box = 0; box < BOXES; box++) {
                    load_box(to + box * BOX, map, box * 64, tile * KEYS, head / g.shared_by, full);
                }
            };
            for (int tile = 0; tile < tiles; tile++) {
                const int stage = tile % STAGES;
                load(k_tiles + stage * TILE_BYTES, k_map, tile, shared_address(&k_full[stage]),
                     shared_address(&k_empty[stage]));
                load(v_tiles + stage * TILE_BYTES, v_map, tile, shared_address(&v_full[stage]),
                     shared_address(&v_empty[stage]));
            }
        }
        return;
    }
    take_registers<240>();
    const int row = first_query + (group - 1) * 64 + warp * 16 + lane / 4;  // the lane's first; the second is 8 below
    const int first_row = first_query + (group - 1) * 64;
    const float to_log2 = g.scale * LOG2E;
    float result[BOXES * 32] = {}, p[KEYS / 2], largest[2] = {-CUDART_INF_F, -CUDART_INF_F}, sum[2] = {}, less[2];
    unsigned of_p[KEYS / 16][4];
    auto ask_for_scores = [&](int tile) {
        const unsigned keys = k_tiles + tile % STAGES * TILE_BYTES;
        barrier_wait(shared_address(&k_full[tile % STAGES]), tile / STAGES % 2);
        wgmma_fence();
#pragma unroll
        for (int depth = 0; depth < BOXES * 64; depth += 16) {
            wgmma<K_MAJOR, K_MAJOR, FACTORS>(
                p, k_major(q_tile + depth / 64 * Q_BOX, (group - 1) * 64, depth % 64),
                k_major(keys + depth / 64 * BOX, 0, depth % 64), depth > 0);
        }
        wgmma_commit();
    };
    auto ask_for_values = [&](int tile) {
        const unsigned values = v_tiles + tile % STAGES * TILE_BYTES;
        barrier_wait(shared_address(&v_full[tile % STAGES]), tile / STAGES % 2);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < KEYS / 16; i++) {
            wgmma_held<MN_MAJOR, FACTORS>(result, of_p[i], mn_major(values, i * 16, KEYS), 1);
        }
        wgmma_commit();
    };
    auto release = [&](unsigned long long *empty, int tile) {
        if (lane == 0) barrier_arrive(shared_address(&empty[tile % STAGES]));
    };
    // Scores to weights; `less`: by what all before is to be multiplied.
    auto soften = [&](int first) {
        if (first + KEYS > min(g.keys, first_row + g.further + 1)) {  // not all of the warpgroup see all of the tile
#pragma unroll
            for (int i = 0; i < KEYS / 2; i++) {
                const int key = first + i / 4 * 8 + lane % 4 * 2 + i % 2;
                if (key >= g.keys || key > row + i / 2 % 2 * 8 + g.further) p[i] = -CUDART_INF_F;
            }
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float top = largest[h];
#pragma unroll
            for (int i = 2 * h; i < KEYS / 2; i += 4) top = fmaxf(top, fmaxf(p[i], p[i + 1]));
            top = row_max(top);
            const float shift = top == -CUDART_INF_F ? 0 : top * to_log2;  // no key seen yet: all weights are 0
            less[h] = power_of_2(largest[h] * to_log2 - shift);
            largest[h] = top, sum[h] *= less[h];
#pragma unroll
            for (int i = 2 * h; i < KEYS / 2; i += 4) {
                p[i] = power_of_2(p[i] * to_log2 - shift), p[i + 1] = power_of_2(p[i + 1] * to_log2 - shift);
                sum[h] += p[i] + p[i + 1];
            }
        }
    };
    auto hold_weights = [&]() {
#pragma unroll
        for (int i = 0; i < KEYS / 4; i++) of_p[i / 4][i % 4] = packed(p[2 * i], p[2 * i + 1], TYPE());
    };

    if (tiles) {
        barrier_wait(shared_address(&q_full), 0);
        ask_for_scores(0);
        wgmma_wait<0>();
        settle(p);
        release(k_empty, 0);
        soften(0);
        hold_weights();
        for (int tile = 1; tile < tiles; tile++) {
            ask_for_scores(tile);
            ask_for_values(tile - 1);
            wgmma_wait<1>();  // for the scores
            settle(p);
            release(k_empty, tile);
            soften(tile * KEYS);
            wgmma_wait<0>();
            settle(result);
            release(v_empty, tile - 1);
#pragma unroll
            for (int i = 0; i < BOXES * 32; i++) result[i] *= less[i / 2 % 2];
            hold_weights();
        }
        ask_for_values(tiles - 1);
        wgmma_wait<0>();
        settle(result);
    }

#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float whole = row_sum(sum[h]), inverse = whole > 0 ? 1 / whole : 0;
        const int query = row + h * 8;
        if (query >= g.queries) continue;
        const size_t at = size_t(head) * g.queries + query;
#pragma unroll
        for (int j = 0; j < SIZE / 8; j++) {
            *reinterpret_cast<unsigned *>(out + at * SIZE + j * 8 + lane % 4 * 2) =
                packed(result[4 * j + 2 * h] * inverse, result[4 * j + 2 * h + 1] * inverse, TYPE());
        }
        if (lane % 4 == 0) lse[at] = whole > 0 ? largest[h] * g.scale + logf(whole) : -CUDART_INF_F;
    }
}

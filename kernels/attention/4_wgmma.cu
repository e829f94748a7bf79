// 4. Hopper's own way, FlashAttention 3's (Shah et al., 2024, arXiv 2407.08608): TMA, wgmma, warps with roles.
// Changed: one thread of the first warpgroup loads queries, keys and values by TMA, as far ahead as there are stages; the
// other warpgroups, 64 queries each, multiply by wgmma straight from shared memory. The weights stay in registers, as the
// left factor of the product with the values. The scores of the next keys are asked for before that product, so that
// the softmax of one tile runs while the tensor cores multiply by the values of the tile before.
// The warpgroups take turns at asking, so that one's softmax runs during another's products too. A block takes tile after
// tile of queries: the next one's keys come while the last one's output is written.
// Expected: the rate of wgmma (step 6 of lab 05), less what of the softmax is not hidden, and the first and last tile.
// On an H200: 0.96 to 1.09 of cuDNN's speed, heads of 128 and 64 at lengths of 512 to 16k. ptxas keeps all in registers,
// and warns of no wgmma that it waits for.
//
// TYPE: half or bfloat16. HEAD_SIZE: of a head. KEYS: of a tile. STAGES: tiles of keys, and of values, in shared memory.
// CONSUMERS: warpgroups that multiply. Columns past a head's end come as zeros.
#include <warplab/hopper.cuh>

#include "fragments.cuh"

constexpr int SIZE = HEAD_SIZE;
constexpr int THREADS = 128 * (1 + CONSUMERS), QUERIES = 64 * CONSUMERS;
constexpr int BOXES = (SIZE + 63) / 64;  // of 64 columns, side by side
constexpr int Q_BOX = QUERIES * LINE_BYTES, BOX = KEYS * LINE_BYTES, TILE_BYTES = BOXES * BOX;
static_assert(BOXES == 1 || BOXES == 2 || BOXES == 4, "wgmma_held has these widths");
constexpr int FACTORS = FACTORS_OF<TYPE>;

// A tile of queries: of which head, the first, and how many tiles of keys it sees, at least one.
struct Work {
    int head, first_query, tiles;
};

// The block's tile of queries number `turn`; false after the last. Of a head the order is last, first, last but one,
// second …, and a block takes two in turn: where causal, any two see as many keys together.
__device__ __forceinline__ bool find(Work &work, int turn, int heads, const Shape &g) {
    const int of_head = (g.queries + QUERIES - 1) / QUERIES, several = gridDim.x < of_head * heads;
    const int number = several ? (turn / 2 * gridDim.x + blockIdx.x) * 2 + turn % 2 : turn * gridDim.x + blockIdx.x;
    const int place = number % of_head;
    work.head = number / of_head;
    work.first_query = (place % 2 ? place / 2 : of_head - 1 - place / 2) * QUERIES;
    const int end = min(g.keys, work.first_query + QUERIES + g.further);  // no key is seen from here on
    work.tiles = max(1, (end + KEYS - 1) / KEYS);
    return work.head < heads;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention_wgmma(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                    const __grid_constant__ TensorMap v_map, TYPE *__restrict__ out, float *__restrict__ lse, Shape g,
                    int heads) {
    extern __shared__ unsigned char memory[];
    __shared__ unsigned long long q_full[CONSUMERS], q_empty[CONSUMERS];
    __shared__ unsigned long long k_full[STAGES], v_full[STAGES], k_empty[STAGES], v_empty[STAGES];
    const unsigned q_tile = (shared_address(memory) + 1023) / 1024 * 1024;  // the swizzle repeats after 1024 bytes
    const unsigned k_tiles = q_tile + BOXES * Q_BOX, v_tiles = k_tiles + STAGES * TILE_BYTES;
    const int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0), warp = threadIdx.x / 32 % 4;
    const int lane = threadIdx.x % 32;
    Work work;
    if (threadIdx.x == 0) {
        for (int consumer = 0; consumer < CONSUMERS; consumer++) {
            barrier_init(shared_address(&q_full[consumer]), 1);
            barrier_init(shared_address(&q_empty[consumer]), 4);
        }
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
        give_registers<32>();
        if (threadIdx.x > 0) return;
        for (int turn = 0, step = 0; find(work, turn, heads, g); turn++) {
            for (int tile = 0; tile < work.tiles; tile++, step++) {
                const int stage = step % STAGES;
                auto load = [&](unsigned to, const TensorMap &map, unsigned full, unsigned empty) {
                    barrier_wait(empty, step / STAGES % 2 ^ 1);
                    barrier_expect(full, TILE_BYTES);
                    for (int box = 0; box < BOXES; box++) {
                        load_box(to + box * BOX, map, box * 64, tile * KEYS, work.head / g.shared_by, full);
                    }
                };
                load(k_tiles + stage * TILE_BYTES, k_map, shared_address(&k_full[stage]),
                     shared_address(&k_empty[stage]));
                for (int consumer = 0; tile == 0 && consumer < CONSUMERS; consumer++) {
                    const unsigned full = shared_address(&q_full[consumer]), rows = consumer * 64;
                    barrier_wait(shared_address(&q_empty[consumer]), turn % 2 ^ 1);
                    barrier_expect(full, BOXES * 64 * LINE_BYTES);
                    for (int box = 0; box < BOXES; box++) {
                        load_box(q_tile + box * Q_BOX + rows * LINE_BYTES, q_map, box * 64, work.first_query + rows,
                                 work.head, full);
                    }
                }
                load(v_tiles + stage * TILE_BYTES, v_map, shared_address(&v_full[stage]),
                     shared_address(&v_empty[stage]));
            }
        }
        return;
    }
    take_registers<CONSUMERS == 2 ? 232 : 160>();
    const float to_log2 = g.scale * LOG2E;
    float result[BOXES * 32], p[KEYS / 2], largest[2], sum[2], less[2];
    unsigned of_p[KEYS / 16][4];
    auto ask_for_scores = [&](int step) {
        const unsigned keys = k_tiles + step % STAGES * TILE_BYTES;
        barrier_wait(shared_address(&k_full[step % STAGES]), step / STAGES % 2);
        wgmma_fence();
#pragma unroll
        for (int depth = 0; depth < BOXES * 64; depth += 16) {
            wgmma<K_MAJOR, K_MAJOR, FACTORS>(
                p, k_major(q_tile + depth / 64 * Q_BOX, (group - 1) * 64, depth % 64),
                k_major(keys + depth / 64 * BOX, 0, depth % 64), depth > 0);
        }
        wgmma_commit();
    };
    auto ask_for_values = [&](int step) {
        const unsigned values = v_tiles + step % STAGES * TILE_BYTES;
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < KEYS / 16; i++) {
            wgmma_held<MN_MAJOR, FACTORS>(result, of_p[i], mn_major(values, i * 16, KEYS), 1);
        }
        wgmma_commit();
    };
    auto release = [&](unsigned long long &empty) {
        if (lane == 0) barrier_arrive(shared_address(&empty));
    };
    auto scores_are_here = [&](int tile, int step) {
        settle(p);
        release(k_empty[step % STAGES]);
        if (tile + 1 == work.tiles) release(q_empty[group - 1]);
    };
    // Scores of a tile of keys to weights; `less`: by what all before is to be multiplied. Waits for the tile's values, in
    // a loop that holds the softmax before it: else ptxas would move it after the wait for the product under way.
    auto soften = [&](int tile, int step) {
        const int first = tile * KEYS;
        const int first_row = work.first_query + (group - 1) * 64, row = first_row + warp * 16 + lane / 4;
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
        settle(p);
        barrier_wait(shared_address(&v_full[step % STAGES]), step / STAGES % 2);
    };
    auto hold_weights = [&]() {
#pragma unroll
        for (int i = 0; i < KEYS / 4; i++) of_p[i / 4][i % 4] = packed(p[2 * i], p[2 * i + 1], TYPE());
    };

    if (group == CONSUMERS) threads_arrive<256>(1);  // the first warpgroup's turn
    for (int turn = 0, step = 0; find(work, turn, heads, g); turn++) {
        for (int h = 0; h < 2; h++) largest[h] = -CUDART_INF_F, sum[h] = 0;
        for (int i = 0; i < BOXES * 32; i++) result[i] = 0;
        barrier_wait(shared_address(&q_full[group - 1]), turn % 2);
        ask_for_scores(step);
        wgmma_wait<0>();
        scores_are_here(0, step);
        soften(0, step);
        hold_weights();
        for (int tile = 1; tile < work.tiles; tile++) {
            threads_sync<256>(group);
            ask_for_scores(step + 1);
            ask_for_values(step);
            threads_arrive<256>(group % CONSUMERS + 1);
            wgmma_wait<1>();  // for the scores
            scores_are_here(tile, step + 1);
            soften(tile, step + 1);
            wgmma_wait<0>();
            settle(result);
            release(v_empty[step++ % STAGES]);
#pragma unroll
            for (int i = 0; i < BOXES * 32; i++) result[i] *= less[i / 2 % 2];
            hold_weights();
        }
        ask_for_values(step);
        wgmma_wait<0>();
        settle(result);
        release(v_empty[step++ % STAGES]);

        const int row = work.first_query + (group - 1) * 64 + warp * 16 + lane / 4;  // the second is eight below
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float whole = row_sum(sum[h]), inverse = whole == 0 ? 0 : 1 / whole;
            const int query = row + h * 8;
            const size_t at = size_t(work.head) * g.queries + query;
            // Neighbours exchange halves of two fragments: 8 bytes of a lane, 32 of a row, are side by side.
#pragma unroll
            for (int j = 0; j < SIZE / 8; j += 2) {
                unsigned words[2];
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const float *const both = &result[4 * (j + i) + 2 * h];
                    words[i] = packed(both[0] * inverse, both[1] * inverse, TYPE());
                }
                const unsigned theirs = __shfl_xor_sync(0xffffffff, lane % 2 ? words[0] : words[1], 1);
                const uint2 mine = lane % 2 ? make_uint2(theirs, words[1]) : make_uint2(words[0], theirs);
                TYPE *const to = out + at * SIZE + (j + lane % 2) * 8 + lane % 4 / 2 * 4;
                if (query < g.queries) *reinterpret_cast<uint2 *>(to) = mine;
            }
            if (lane % 4 == 0 && query < g.queries) {
                lse[at] = whole == 0 ? -CUDART_INF_F : largest[h] * g.scale + logf(whole);
            }
        }
    }
    if (group == 1) threads_sync<256>(1);  // the turn that nobody takes
}

// Backward on Hopper, FlashAttention 3's way (Shah et al., 2024, arXiv 2407.08608): TMA, wgmma, warps with roles.
// Changed from backward.cu: one kernel, so 5 products in place of 7. A block has 128 keys, and runs over the queries that
// see them. Each of two warpgroups computes scores and dp of its 64 keys, turned, so that p and ds are the left factors
// of dv += pᵀ dout and dk += dsᵀ q as they lie in registers. For dq = ds k the warpgroups give each other ds through
// shared memory. What a block adds to dq goes to float32 in global memory by red, in the order in which blocks come: dq
// is not the same to the last bit each time. It lies there as the warpgroups hold it; attention_dq rounds it.
// Expected: the rate of wgmma (step 6 of lab 05), less what of exp and ds neither the other warpgroup's products nor
// dv's hide. A product of 64 × 64 with both factors in shared memory reads there all that can be read in its time.
// Reached (H200, 2026-11-27, 16 heads, 16k tokens, float16): 446 TFLOP/s at a length of 1k, 616 at 8k, causal 318 and
// 566; of cuDNN's 1.00, 1.12, 1.00, 1.11. Heads of 64: 378, 539, causal 266, 495; of cuDNN's 1.08, 1.19, 1.12, 1.20.
// ncu at 4k: L1 and shared memory at 75 % of their throughput (heads of 64: 66 %), L2 at 58 %. At 1k an eighth of the
// time goes to delta, zeros and the rounding of dq. racecheck of compute-sanitizer names lse and delta, of which one
// lane of a warp says that all have read them, after threads_sync; where all lanes say so it finds nothing.
//
// TYPE: half or bfloat16. HEAD_SIZE: of a head, 64 or 128. STAGES: tiles of q, and of dout, in shared memory.
#include <warplab/hopper.cuh>

#include "fragments.cuh"

constexpr int SIZE = HEAD_SIZE, KEYS = 128, QUERIES = 8192 / SIZE;  // the latter two of a tile
constexpr int CONSUMERS = 2, THREADS = 128 * (1 + CONSUMERS);
constexpr int BOXES = SIZE / 64, PANELS = QUERIES / 64;  // of 64 columns, side by side: of operands, and of ds turned
constexpr int K_BOX = KEYS * LINE_BYTES, Q_BOX = QUERIES * LINE_BYTES;
constexpr int K_BYTES = BOXES * K_BOX, Q_BYTES = BOXES * Q_BOX, DS_BYTES = PANELS * K_BOX;
constexpr int OF_QUERIES = 2 * QUERIES;  // floats of a tile: lse to base 2, then delta
constexpr bool EARLY = QUERIES == 64;  // dv is asked for before ds is computed; for 128 registers do not suffice
static_assert(BOXES * PANELS == 2, "each warpgroup computes 64 × 64 of dq: other columns, or other queries");
constexpr int FACTORS = FACTORS_OF<TYPE>;

// Where a warpgroup's 64 × 64 of dq start in the sums: float4 number j of each thread, then number j + 1, as wgmma gives
// them.
__device__ __forceinline__ size_t place_of_dq(int tile, int group) { return (size_t(tile) * CONSUMERS + group) * 4096; }

__device__ __forceinline__ void add4(float *to, float a, float b, float c, float d) {
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(a), "f"(b), "f"(c), "f"(d)
                 : "memory");
}

// Bytes in a row, a multiple of 16.
__device__ __forceinline__ void load_line(unsigned to, const void *from, unsigned bytes, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
        "r"(bytes), "r"(barrier)
        : "memory");
}

// SIZE / 8 lanes per row of whole tiles. A query that sees no key, or none at all, has an lse of infinity: its weights
// are 0.
extern "C" __global__ void attention_of_queries(const TYPE *__restrict__ out, const TYPE *__restrict__ dout,
                                                const float *__restrict__ lse, float *__restrict__ of_queries,
                                                int queries, int rows) {
    struct alignas(16) Part {
        TYPE of[8];
    };
    constexpr int LANES = SIZE / 8;
    const int row = blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES, part = threadIdx.x % LANES;
    const int padded = ((queries - 1) / QUERIES + 1) * QUERIES, query = row % padded;
    const size_t at = size_t(row / padded) * queries + query;
    const bool inside = row < rows && query < queries;
    float delta = 0;
    if (inside) {
        const Part x = reinterpret_cast<const Part *>(out)[at * LANES + part];
        const Part y = reinterpret_cast<const Part *>(dout)[at * LANES + part];
#pragma unroll
        for (int i = 0; i < 8; i++) delta += float(x.of[i]) * float(y.of[i]);
    }
    for (int step = LANES / 2; step > 0; step /= 2) delta += __shfl_xor_sync(0xffffffff, delta, step);
    if (part == 0 && row < rows) {
        const float sum = inside ? lse[at] : -CUDART_INF_F;
        float *to = of_queries + size_t(row / QUERIES) * OF_QUERIES + row % QUERIES;
        to[0] = sum == -CUDART_INF_F ? CUDART_INF_F : sum * LOG2E;
        to[QUERIES] = delta;
    }
}

// A block of 512 threads per tile of queries and head. A thread takes what four lanes held: eight columns of two rows.
extern "C" __global__ void attention_dq(const float *__restrict__ sums, TYPE *__restrict__ dq, Shape g) {
    const int group = threadIdx.x / 256, j = threadIdx.x % 8, fours = threadIdx.x / 8 % 32;  // of the warpgroup's lanes
    const int row = blockIdx.x * QUERIES + (PANELS > 1 ? group * 64 : 0) + fours / 8 * 16 + fours % 8;
    const int column = (BOXES > 1 ? group * 64 : 0) + j * 8;
    const float *from = sums + place_of_dq(blockIdx.y * gridDim.x + blockIdx.x, group) + j * 512 + fours * 16;
    unsigned words[2][4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float4 x = reinterpret_cast<const float4 *>(from)[i];
        words[0][i] = packed(x.x * g.scale, x.y * g.scale, TYPE());
        words[1][i] = packed(x.z * g.scale, x.w * g.scale, TYPE());
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        if (row + h * 8 >= g.queries) continue;
        TYPE *to = dq + (size_t(blockIdx.y) * g.queries + row + h * 8) * SIZE + column;
        *reinterpret_cast<uint4 *>(to) = make_uint4(words[h][0], words[h][1], words[h][2], words[h][3]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention_backward_wgmma(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                             const __grid_constant__ TensorMap v_map, const __grid_constant__ TensorMap dout_map,
                             const float *__restrict__ of_queries, float *__restrict__ dq_sums,
                             TYPE *__restrict__ dk_out, TYPE *__restrict__ dv_out, Shape g) {
    extern __shared__ unsigned char memory[];
    __shared__ unsigned long long kv_full, q_full[STAGES], dout_full[STAGES], q_empty[STAGES], dout_empty[STAGES];
    __shared__ __align__(16) float of_tile[STAGES][OF_QUERIES];
    const unsigned k_tile = (shared_address(memory) + 1023) / 1024 * 1024;  // the swizzle repeats after 1024 bytes
    const unsigned v_tile = k_tile + K_BYTES, q_tiles = v_tile + K_BYTES, dout_tiles = q_tiles + STAGES * Q_BYTES;
    const unsigned ds_tiles = dout_tiles + STAGES * Q_BYTES;
    const int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0), warp = threadIdx.x / 32 % 4;
    const int lane = threadIdx.x % 32;
    const int of_keys = blockIdx.y, first_key = blockIdx.x * KEYS;
    const int tiles = (g.queries - 1) / QUERIES + 1;
    const int begin = max(0, first_key - g.further) / QUERIES;  // queries before see none of the keys
    const int all = g.shared_by * (tiles - begin);
    int tile = begin, before = of_keys * g.shared_by * tiles;  // of queries: in its head, and all of the heads before
    auto advance = [&]() {
        if (++tile == tiles) tile = begin, before += tiles;
    };
    if (threadIdx.x == 0) {
        barrier_init(shared_address(&kv_full), 1);
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(shared_address(&q_full[stage]), 1);
            barrier_init(shared_address(&dout_full[stage]), 1);
            barrier_init(shared_address(&q_empty[stage]), CONSUMERS * 4);  // each warp that reads what is loaded here
            barrier_init(shared_address(&dout_empty[stage]), CONSUMERS * 4);
        }
        fence_barrier_init();
    }
    __syncthreads();

    if (group == 0) {
        give_registers<24>();
        if (threadIdx.x == 0) {
            const unsigned kv = shared_address(&kv_full);
            barrier_expect(kv, 2 * K_BYTES);
            for (int box = 0; box < BOXES; box++) {
                load_box(k_tile + box * K_BOX, k_map, box * 64, first_key, of_keys, kv);
                load_box(v_tile + box * K_BOX, v_map, box * 64, first_key, of_keys, kv);
            }
            for (int n = 0; n < all; n++) {
                const int stage = n % STAGES, parity = n / STAGES % 2, head = before / tiles;
                const unsigned q = shared_address(&q_full[stage]), dout = shared_address(&dout_full[stage]);
                barrier_wait(shared_address(&q_empty[stage]), parity ^ 1);
                barrier_expect(q, Q_BYTES + OF_QUERIES * 4);
                for (int box = 0; box < BOXES; box++) {
                    load_box(q_tiles + stage * Q_BYTES + box * Q_BOX, q_map, box * 64, tile * QUERIES, head, q);
                }
                load_line(shared_address(of_tile[stage]), of_queries + size_t(before + tile) * OF_QUERIES,
                          OF_QUERIES * 4, q);
                barrier_wait(shared_address(&dout_empty[stage]), parity ^ 1);
                barrier_expect(dout, Q_BYTES);
                for (int box = 0; box < BOXES; box++) {
                    const unsigned to = dout_tiles + stage * Q_BYTES + box * Q_BOX;
                    load_box(to, dout_map, box * 64, tile * QUERIES, head, dout);
                }
                advance();
            }
        }
        return;
    }
    take_registers<240>();
    const int own = (group - 1) * 64;                        // first of the warpgroup's keys in the tile
    const int key = first_key + own + warp * 16 + lane / 4;  // the lane's first; the second is 8 below
    const float to_log2 = g.scale * LOG2E;
    float dk[SIZE / 2] = {}, dv[SIZE / 2] = {};
    // sums = keys or values of the warpgroup · queries or douts, turned
    auto ask_for = [&](float (&sums)[QUERIES / 2], unsigned rows, unsigned columns) {
        const unsigned long long a = k_major(rows, own, 0), b = k_major(columns, 0, 0);
        wgmma_fence();
#pragma unroll
        for (int depth = 0; depth < SIZE; depth += 16) {
            wgmma<K_MAJOR, K_MAJOR, FACTORS>(sums, moved(a, depth / 64 * K_BOX + depth % 64 * 2),
                                             moved(b, depth / 64 * Q_BOX + depth % 64 * 2), depth > 0);
        }
        wgmma_commit();
    };
    auto add_to = [&](float (&sums)[SIZE / 2], const unsigned (&left)[QUERIES / 16][4], unsigned right) {
        const unsigned long long b = mn_major(right, 0, QUERIES);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < QUERIES / 16; i++) {
            wgmma_held<MN_MAJOR, FACTORS>(sums, left[i], moved(b, i * 16 * LINE_BYTES), 1);
        }
        wgmma_commit();
    };
    auto release = [&](unsigned long long &empty) {
        if (lane == 0) barrier_arrive(shared_address(&empty));
    };

    barrier_wait(shared_address(&kv_full), 0);
    for (int n = 0; n < all; n++) {
        const int stage = n % STAGES, parity = n / STAGES % 2;
        const unsigned q = q_tiles + stage * Q_BYTES, dout = dout_tiles + stage * Q_BYTES;
        const unsigned ds_tile = ds_tiles + n % 2 * DS_BYTES;
        float p[QUERIES / 2], ds[QUERIES / 2], dq[32];
        unsigned of_p[QUERIES / 16][4], of_ds[QUERIES / 16][4];
        barrier_wait(shared_address(&q_full[stage]), parity);
        ask_for(p, k_tile, q);
        barrier_wait(shared_address(&dout_full[stage]), parity);
        ask_for(ds, v_tile, dout);
        wgmma_wait<1>();  // for the scores
        settle(p);
        const float2 *lse = reinterpret_cast<const float2 *>(of_tile[stage]) + lane % 4, *delta = lse + QUERIES / 2;
#pragma unroll
        for (int j = 0; j < QUERIES / 8; j++) {
            const float2 of = lse[j * 4];
#pragma unroll
            for (int i = 0; i < 4; i++) p[4 * j + i] = power_of_2(p[4 * j + i] * to_log2 - (i % 2 ? of.y : of.x));
        }
        const int first = tile * QUERIES;
        if (first_key + KEYS > min(g.keys, first + g.further + 1)) {  // not all of the queries see all of the keys
#pragma unroll
            for (int i = 0; i < QUERIES / 2; i++) {
                const int mine = key + i / 2 % 2 * 8, query = first + i / 4 * 8 + lane % 4 * 2 + i % 2;
                if (mine >= g.keys || mine > query + g.further) p[i] = 0;
            }
        }
#pragma unroll
        for (int i = 0; i < QUERIES / 4; i++) of_p[i / 4][i % 4] = packed(p[2 * i], p[2 * i + 1], TYPE());
        if (EARLY) add_to(dv, of_p, dout);
        wgmma_wait<EARLY>();  // for dp
        settle(ds);
#pragma unroll
        for (int j = 0; j < QUERIES / 8; j++) {
            const float2 of = delta[j * 4];
#pragma unroll
            for (int i = 0; i < 4; i++) ds[4 * j + i] = p[4 * j + i] * (ds[4 * j + i] - (i % 2 ? of.y : of.x));
        }
#pragma unroll
        for (int i = 0; i < QUERIES / 16; i++) {
#pragma unroll
            for (int word = 0; word < 4; word++) {
                of_ds[i][word] = packed(ds[8 * i + 2 * word], ds[8 * i + 2 * word + 1], TYPE());
            }
            const half2 *words = reinterpret_cast<const half2 *>(of_ds[i]);
            keep_16x16(ds_tile + i / 4 * K_BOX, own + warp * 16, i % 4 * 16, words[0], words[1], words[2], words[3]);
        }
        if (!EARLY) add_to(dv, of_p, dout);
        fence_for_tma();                   // wgmma reads as TMA does
        threads_sync<CONSUMERS * 128>(1);  // ds is whole; and the one before is read
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < KEYS; i += 16) {
            wgmma<MN_MAJOR, MN_MAJOR, FACTORS>(dq, mn_major(ds_tile + (PANELS > 1 ? group - 1 : 0) * K_BOX, i, KEYS),
                                               mn_major(k_tile + (BOXES > 1 ? group - 1 : 0) * K_BOX, i, KEYS), i > 0);
        }
        wgmma_commit();
        add_to(dk, of_ds, q);
        wgmma_wait<1>();  // for dv and dq
        settle(dq);
        release(dout_empty[stage]);
        float *sums = dq_sums + place_of_dq(before + tile, group - 1) + threadIdx.x % 128 * 4;
#pragma unroll
        for (int j = 0; j < 8; j++) add4(sums + j * 512, dq[4 * j], dq[4 * j + 1], dq[4 * j + 2], dq[4 * j + 3]);
        wgmma_wait<0>();
        settle(dk);
        settle(dv);
        release(q_empty[stage]);
        advance();
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        if (key + h * 8 >= g.keys) continue;
        const size_t at = (size_t(of_keys) * g.keys + key + h * 8) * SIZE + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < SIZE / 8; j++) {
            const int i = 4 * j + 2 * h;
            *reinterpret_cast<unsigned *>(dk_out + at + j * 8) = packed(dk[i] * g.scale, dk[i + 1] * g.scale, TYPE());
            *reinterpret_cast<unsigned *>(dv_out + at + j * 8) = packed(dv[i], dv[i + 1], TYPE());
        }
    }
}

// One token: a query for each head, and all the keys and values so far. Nothing is used twice but by the query heads that
// share a head of keys, so bytes are the limit: 4 · keys · size of each head of keys.
//
// Keys are split over blocks, and those of a block over its warps, each with a softmax of its own; the block combines
// what its warps found, the last block what all have found. Of the fragments of mma.sync, rows are query heads, up to
// 16 that share their keys; a warp takes 16 keys at a time.
//
// A warp asks for what it will need STAGES - 1 steps ahead, so that memory always has work. Shared memory is but a queue
// of the warp's own, and no warp waits for another.
//
// The cache is paged: pages of `page` keys, (pages, heads of keys, page, size), and a table of the pages of each sequence
// (Kwon et al., 2023, arXiv 2309.06180). 16 keys lie in one page.
// On an H200, 8192 keys: 0.96 to 1.00 of a copy's bandwidth at batches of 8 and 64, above cuDNN's at 1.
//
// T: half or bfloat16. SIZE: of a head. WARPS: of a block.
#include "fragments.cuh"

constexpr int STAGES = 3, KEYS = 16;  // of a step of a warp
constexpr int HEADS = 16;             // rows of the left factor

struct Cache {
    int heads, shared_by, page, most_pages, splits;
    float scale;
};

// Softmaxes put together, each by the logarithm of its largest weight, to base 2, its sum of weights and four columns of
// what they weigh.
struct Sum {
    float top = -CUDART_INF_F, whole = 0;
    float4 weighed = {};

    __device__ __forceinline__ void add(float its_top, float its_whole, float4 columns) {
        const float new_top = fmaxf(top, its_top), shift = new_top == -CUDART_INF_F ? 0 : new_top;  // no keys: weights 0
        const float less = power_of_2(top - shift), weight = power_of_2(its_top - shift);
        top = new_top, whole = whole * less + its_whole * weight;
        weighed.x = weighed.x * less + columns.x * weight, weighed.y = weighed.y * less + columns.y * weight;
        weighed.z = weighed.z * less + columns.z * weight, weighed.w = weighed.w * less + columns.w * weight;
    }

    __device__ __forceinline__ float4 mean() const {
        const float inverse = whole == 0 ? 0 : 1 / whole;
        return make_float4(weighed.x * inverse, weighed.y * inverse, weighed.z * inverse, weighed.w * inverse);
    }

    __device__ __forceinline__ float log_sum() const { return whole == 0 ? -CUDART_INF_F : top * LN2 + logf(whole); }
};

template <typename T, int SIZE, int WARPS>
__global__ void __launch_bounds__(WARPS * 32)
    attention_decode(const T *__restrict__ q, const T *__restrict__ k, const T *__restrict__ v,
                     const int *__restrict__ table, const int *__restrict__ lengths, float *parts, float *part_lse,
                     T *__restrict__ out, float *__restrict__ lse, unsigned *arrived, Cache g) {
    using Keys = Tile<T, KEYS, SIZE, 32>;
    constexpr int QUEUE = 2 * STAGES * Keys::BYTES;  // of a warp: keys and values of each stage
    static_assert(HEADS * Keys::PITCH * 4 <= QUEUE, "what a warp found takes the place of its queue");
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ float tops[WARPS][HEADS], sums[WARPS][HEADS];
    const int split = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4, t = lane % 4;
    // Blocks in y: for each head of keys, 16 of the query heads that share it at a time.
    const int of_keys = g.heads / g.shared_by, chunk = blockIdx.y / of_keys, head_of_keys = blockIdx.y % of_keys;
    const int first_head = head_of_keys * g.shared_by + chunk * HEADS, heads = min(HEADS, g.shared_by - chunk * HEADS);
    const int length = min(lengths[blockIdx.z], g.most_pages * g.page);
    const int each = ((length + g.splits - 1) / g.splits + KEYS - 1) / KEYS * KEYS;
    const int begin = split * each + warp * KEYS, end = min(length, (split + 1) * each);
    table += blockIdx.z * g.most_pages;
    q += (size_t(blockIdx.z) * g.heads + first_head) * SIZE;

    unsigned of_q[SIZE / 16][4];
#pragma unroll
    for (int i = 0; i < SIZE / 16; i++) {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            const int head = row + w % 2 * 8, column = i * 16 + w / 2 * 8 + t * 2;
            of_q[i][w] = head < heads ? *reinterpret_cast<const unsigned *>(q + head * SIZE + column) : 0;
        }
    }

    const unsigned queue = unsigned(__cvta_generic_to_shared(memory)) + warp * QUEUE;
    int page = begin < end ? table[begin / g.page] : 0;
    auto ask = [&](int first, int stage) {
        if (first < end) {
            const size_t at = ((size_t(page) * of_keys + head_of_keys) * g.page + first % g.page) * SIZE;
            const int next = first + WARPS * KEYS;
            if (next < end) page = table[next / g.page];  // early: the next addresses depend on it
            const Keys k_tile{queue + 2 * stage * Keys::BYTES}, v_tile{k_tile.start + Keys::BYTES};
            k_tile.copy(k + at, 0, end - first);
            v_tile.copy(v + at, 0, end - first);
        }
        copies_commit();  // without copies too: as many groups as steps
    };
    const float to_log2 = g.scale * LOG2E;
    float result[SIZE / 8][4] = {}, largest[2] = {-CUDART_INF_F, -CUDART_INF_F}, sum[2] = {};
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) ask(begin + i * WARPS * KEYS, i);
    for (int first = begin, step = 0; first < end; first += WARPS * KEYS, step++) {
        __syncwarp();  // all lanes have used the stage that is filled now
        ask(first + (STAGES - 1) * WARPS * KEYS, (step + STAGES - 1) % STAGES);
        copies_wait<STAGES - 1>();
        __syncwarp();  // all lanes' copies are here
        const Keys k_tile{queue + 2 * (step % STAGES) * Keys::BYTES}, v_tile{k_tile.start + Keys::BYTES};
        float p[2][4] = {};
#pragma unroll
        for (int i = 0; i < SIZE / 16; i++) {
            unsigned of_k[4];
            k_tile.right(of_k, 0, i * 16);
            multiply_add(p[0], of_q[i], of_k[0], of_k[1], T());
            multiply_add(p[1], of_q[i], of_k[2], of_k[3], T());
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float top = largest[h];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float &score = p[j / 2][2 * h + j % 2];
                if (j / 2 * 8 + t * 2 + j % 2 >= end - first) score = -CUDART_INF_F;
                top = fmaxf(top, score);
            }
            top = row_max(top);
            const float shift = top == -CUDART_INF_F ? 0 : top * to_log2;  // scores of -inf alone: all weights are 0
            const float less = power_of_2(largest[h] * to_log2 - shift);
            largest[h] = top, sum[h] *= less;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float &weight = p[j / 2][2 * h + j % 2];
                weight = power_of_2(weight * to_log2 - shift);
                sum[h] += weight;
            }
#pragma unroll
            for (int j = 0; j < SIZE / 8; j++) result[j][2 * h] *= less, result[j][2 * h + 1] *= less;
        }
        unsigned of_p[4];
        as_factor<T>(of_p, p[0], p[1]);
#pragma unroll
        for (int j = 0; j < SIZE / 8; j += 2) {
            unsigned of_v[4];
            v_tile.right_turned(of_v, 0, j * 8);
            multiply_add(result[j], of_p, of_v[0], of_v[1], T());
            multiply_add(result[j + 1], of_p, of_v[2], of_v[3], T());
        }
    }

    __syncwarp();
    auto found = [&](int of_warp) { return reinterpret_cast<float *>(memory + of_warp * QUEUE); };
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float whole = row_sum(sum[h]);
        const int head = row + h * 8;
        if (head >= heads) continue;
        if (t == 0) tops[warp][head] = largest[h] * to_log2, sums[warp][head] = whole;
#pragma unroll
        for (int j = 0; j < SIZE / 8; j++) {
            float *const to = found(warp) + head * Keys::PITCH + j * 8 + t * 2;
            *reinterpret_cast<float2 *>(to) = make_float2(result[j][2 * h], result[j][2 * h + 1]);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x * 4; i < heads * SIZE; i += WARPS * 128) {
        const int head = i / SIZE, column = i % SIZE;
        Sum all;
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            const float *const from = found(w) + head * Keys::PITCH + column;
            all.add(tops[w][head], sums[w][head], *reinterpret_cast<const float4 *>(from));
        }
        const size_t at = (size_t(blockIdx.z) * g.heads + first_head + head) * g.splits + split;
        *reinterpret_cast<float4 *>(parts + at * SIZE + column) = all.mean();
        if (column == 0) part_lse[at] = all.log_sum();
    }

    // The last of a head's blocks to come here puts together what all have found. atomicInc leaves 0 for the next launch.
    __shared__ unsigned before;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) before = atomicInc(&arrived[blockIdx.z * gridDim.y + blockIdx.y], g.splits - 1);
    __syncthreads();
    if (before < g.splits - 1) return;
    __threadfence();
    for (int i = threadIdx.x * 4; i < heads * SIZE; i += WARPS * 128) {
        const size_t head = size_t(blockIdx.z) * g.heads + first_head + i / SIZE, column = i % SIZE;
        Sum all;
#pragma unroll 8  // asks for eight at a time
        for (int j = 0; j < g.splits; j++) {
            const size_t at = head * g.splits + j;
            const float4 part = __ldcg(reinterpret_cast<const float4 *>(parts + at * SIZE + column));
            all.add(__ldcg(part_lse + at) * LOG2E, 1, part);
        }
        const float4 mean = all.mean();
        const uint2 rounded = make_uint2(packed(mean.x, mean.y, T()), packed(mean.z, mean.w, T()));
        *reinterpret_cast<uint2 *>(out + head * SIZE + column) = rounded;
        if (column == 0) lse[head] = all.log_sum();
    }
}

// One token: a query for each head, and all the keys and values so far. Nothing is used twice but by the query heads that
// share a head of keys, so bytes are the limit: 4 · keys · size of each head of keys.
//
// Keys are split over warps, each with a softmax of its own; a second kernel combines what they found. A warp takes 16
// keys at a time straight from memory to fragments of mma.sync, with no shared memory: a sum does not care for the order
// of its products, so lane 4g + t takes 16 bytes side by side of row g of the keys, and of the query heads likewise. Of
// the values it takes 16 bytes of four rows, and pairs them: columns of the product come in another order, in which each
// lane has 16 side by side in the end. Rows of the left factor are query heads, up to 16 that share their keys.
//
// The cache is paged: pages of `page` keys, (pages, heads of keys, page, size), and a table of the pages of each sequence
// (Kwon et al., 2023, arXiv 2309.06180). 16 keys lie in one page.
// Right in the simulator; not tried on a GPU yet. ptxas (sm_90) takes 174 registers for heads of 128: 8 warps at a time.
//
// T: half or bfloat16. SIZE: of a head.
#include "fragments.cuh"

constexpr int WARPS = 4, KEYS = 16;  // of a block, each with a split; of a step
constexpr int HEADS = 16;            // rows of the left factor

struct Cache {
    int heads, shared_by, page, most_pages, splits;
    float scale;
};

// 16 bytes; zeros unless `inside`.
__device__ __forceinline__ uint4 load(const void *from, bool inside) {
    return inside ? *reinterpret_cast<const uint4 *>(from) : uint4{};
}

template <typename T, int SIZE>
__global__ void __launch_bounds__(WARPS * 32)
    attention_decode(const T *__restrict__ q, const T *__restrict__ k, const T *__restrict__ v,
                     const int *__restrict__ table, const int *__restrict__ lengths, float *__restrict__ parts,
                     float *__restrict__ part_lse, Cache g) {
    constexpr int K_LOADS = (SIZE + 31) / 32, V_LOADS = (SIZE + 63) / 64;  // of a row: four lanes' and eight lanes'
    const int split = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4, t = lane % 4;
    if (split >= g.splits) return;
    // Blocks in y: for each head of keys, 16 of the query heads that share it at a time.
    const int of_keys = g.heads / g.shared_by, chunk = blockIdx.y / of_keys, head_of_keys = blockIdx.y % of_keys;
    const int first_head = head_of_keys * g.shared_by + chunk * HEADS, heads = min(HEADS, g.shared_by - chunk * HEADS);
    const int length = min(lengths[blockIdx.z], g.most_pages * g.page);
    const int each = ((length + g.splits - 1) / g.splits + KEYS - 1) / KEYS * KEYS;
    const int begin = split * each, end = min(length, begin + each);
    table += blockIdx.z * g.most_pages;
    q += (size_t(blockIdx.z) * g.heads + first_head) * SIZE;

    uint4 of_q[K_LOADS][2];
#pragma unroll
    for (int i = 0; i < K_LOADS; i++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const int column = i * 32 + t * 8, head = row + h * 8;
            of_q[i][h] = load(q + head * SIZE + column, head < heads && column < SIZE);
        }
    }

    const float to_log2 = g.scale * LOG2E;
    float result[V_LOADS * 8][4] = {}, largest[2] = {-CUDART_INF_F, -CUDART_INF_F}, sum[2] = {};
    int page = begin < end ? table[begin / g.page] : 0;
    for (int first = begin; first < end; first += KEYS) {
        const size_t at = ((size_t(page) * of_keys + head_of_keys) * g.page + first % g.page) * SIZE;
        const int left = end - first;
        if (first + KEYS < end) page = table[(first + KEYS) / g.page];  // early: the next addresses depend on it
        uint4 of_k[2][K_LOADS], of_v[V_LOADS][4];
#pragma unroll
        for (int j = 0; j < 2; j++) {
#pragma unroll
            for (int i = 0; i < K_LOADS; i++) {
                const int key = j * 8 + row, column = i * 32 + t * 8;
                of_k[j][i] = load(k + at + key * SIZE + column, key < left && column < SIZE);
            }
        }
#pragma unroll
        for (int i = 0; i < V_LOADS; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int key = j / 2 * 8 + t * 2 + j % 2, column = i * 64 + row * 8;
                of_v[i][j] = load(v + at + key * SIZE + column, key < left && column < SIZE);
            }
        }
        float p[2][4] = {};
#pragma unroll
        for (int i = 0; i < K_LOADS; i++) {
            const unsigned a[2][4] = {{of_q[i][0].x, of_q[i][1].x, of_q[i][0].y, of_q[i][1].y},
                                      {of_q[i][0].z, of_q[i][1].z, of_q[i][0].w, of_q[i][1].w}};
#pragma unroll
            for (int j = 0; j < 2; j++) {
                multiply_add(p[j], a[0], of_k[j][i].x, of_k[j][i].y, T());
                multiply_add(p[j], a[1], of_k[j][i].z, of_k[j][i].w, T());
            }
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float top = largest[h];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float &score = p[j / 2][2 * h + j % 2];
                if (j / 2 * 8 + t * 2 + j % 2 >= left) score = -CUDART_INF_F;
                top = fmaxf(top, score);
            }
            top = row_max(top);
            const float shift = top * to_log2, less = power_of_2(largest[h] * to_log2 - shift);  // `left` is above 0
            largest[h] = top, sum[h] *= less;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float &weight = p[j / 2][2 * h + j % 2];
                weight = power_of_2(weight * to_log2 - shift);
                sum[h] += weight;
            }
#pragma unroll
            for (int j = 0; j < V_LOADS * 8; j++) result[j][2 * h] *= less, result[j][2 * h + 1] *= less;
        }
        unsigned of_p[4];
        as_factor<T>(of_p, p[0], p[1]);
#pragma unroll
        for (int i = 0; i < V_LOADS; i++) {
            const unsigned(&rows)[4][4] = reinterpret_cast<const unsigned(&)[4][4]>(of_v[i]);
#pragma unroll
            for (int j = 0; j < 8; j++) {
                const int halves = j % 2 ? 0x7632 : 0x5410;  // of words j / 2 of two rows
                multiply_add(result[i * 8 + j], of_p, __byte_perm(rows[0][j / 2], rows[1][j / 2], halves),
                             __byte_perm(rows[2][j / 2], rows[3][j / 2], halves), T());
            }
        }
    }

#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float whole = row_sum(sum[h]);
        const int head = row + h * 8;
        if (head >= heads) continue;
        const size_t at = (size_t(blockIdx.z) * g.heads + first_head + head) * g.splits + split;
        if (t == 0) part_lse[at] = whole > 0 ? largest[h] * g.scale + logf(whole) : -CUDART_INF_F;
#pragma unroll
        for (int i = 0; i < V_LOADS * 8; i++) {
#pragma unroll
            for (int c = 0; c < 2; c++) {
                const int column = i / 8 * 64 + (t * 2 + c) * 8 + i % 8;
                if (whole > 0 && column < SIZE) parts[at * SIZE + column] = result[i][2 * h + c] / whole;
            }
        }
    }
}

// Adds up what the splits found, each weighed by its sum: a block per query head, a thread per column.
template <typename T, int SIZE>
__global__ void attention_combine(const float *__restrict__ parts, const float *__restrict__ part_lse,
                                  T *__restrict__ out, float *__restrict__ lse, int splits) {
    parts += size_t(blockIdx.x) * splits * SIZE;
    part_lse += size_t(blockIdx.x) * splits;
    float largest = -CUDART_INF_F, sum = 0, result = 0;
    for (int i = 0; i < splits; i++) largest = fmaxf(largest, part_lse[i]);
    for (int i = 0; i < splits; i++) {
        if (part_lse[i] == -CUDART_INF_F) continue;  // no keys, and nothing written
        const float weight = expf(part_lse[i] - largest);
        sum += weight;
        result += weight * parts[size_t(i) * SIZE + threadIdx.x];
    }
    out[size_t(blockIdx.x) * SIZE + threadIdx.x] = T(sum > 0 ? result / sum : 0);
    if (threadIdx.x == 0) lse[blockIdx.x] = sum > 0 ? largest + logf(sum) : -CUDART_INF_F;
}

// softmax(q × kᵀ * scale + mask) × v in one launch, without the matrix of scores in memory. A warp has EACH queries: of
// 32 keys at a time each lane has a score of each, and the sums of values so far are scaled down whenever a larger
// score comes (online softmax: Milakov and Gimelshein, 2018). Keys come to the block through shared memory, 32 columns
// at a time. Lanes go along the columns of v, COLUMNS at a time, for each of which the scores are computed anew.
// Expected: one launch for five; scores, S × T for each head, neither written nor read three times; FP32's rate, a part
// of it, as each multiply-add of a score waits for more than one load from shared memory.
// Right in the simulator; no GPU has run it since keys come through shared memory.
#include <math_constants.h>

constexpr int WARPS = 4, EACH = 4, QUERIES = WARPS * EACH;  // of a block
constexpr int PARTS = 4, COLUMNS = 32 * PARTS;

struct Attention {
    int heads, s, t, d, e;
    int mask_image, mask_head, mask_row, mask_column;  // elements from one to the next; 0 repeats
    float scale;
};

extern "C" __global__ void attention(const float *q, const float *k, const float *v, const float *mask, float *y,
                                     Attention g) {
    __shared__ float keys[32][33], queries[QUERIES][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, blocks = (g.s + QUERIES - 1) / QUERIES;
    const int head = blockIdx.x / blocks, first_row = (blockIdx.x - head * blocks) * QUERIES;  // head of all images
    q += size_t(head) * g.s * g.d;
    k += size_t(head) * g.t * g.d;
    v += size_t(head) * g.t * g.e;
    y += size_t(head) * g.s * g.e;
    if (mask) mask += head / g.heads * g.mask_image + head % g.heads * g.mask_head;
    for (int start = 0; start < g.e; start += COLUMNS) {
        float largest[EACH], sum[EACH] = {}, value[EACH][PARTS] = {};
        for (float &x : largest) x = -CUDART_INF_F;
        for (int first = 0; first < g.t; first += 32) {
            float weight[EACH] = {};
            for (int at = 0; at < g.d; at += 32) {
                const int column = at + lane;
                __syncthreads();
                for (int i = warp; i < 32; i += WARPS)
                    keys[i][lane] = first + i < g.t && column < g.d ? k[(first + i) * g.d + column] : 0;
                for (int i = warp; i < QUERIES; i += WARPS)
                    queries[i][lane] = first_row + i < g.s && column < g.d ? q[(first_row + i) * g.d + column] : 0;
                __syncthreads();
#pragma unroll 8
                for (int i = 0; i < 32; i++) {
                    const float of_key = keys[lane][i];
                    for (int r = 0; r < EACH; r++) weight[r] += queries[warp * EACH + r][i] * of_key;
                }
            }
            const int key = first + lane;
            for (int r = 0; r < EACH; r++) {
                const int row = first_row + warp * EACH + r;
                float score = key < g.t ? weight[r] * g.scale : -CUDART_INF_F;
                if (mask && key < g.t && row < g.s) score += mask[row * g.mask_row + key * g.mask_column];
                float top = score;
                for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, step));
                top = fmaxf(top, largest[r]);
                const float less = top == -CUDART_INF_F ? 1 : expf(largest[r] - top);  // all keys so far are masked
                weight[r] = score == -CUDART_INF_F ? 0 : expf(score - top);
                largest[r] = top, sum[r] = sum[r] * less + weight[r];
                for (float &x : value[r]) x *= less;
            }
            for (int i = 0; i < 32 && first + i < g.t; i++) {
                float of_key[EACH];
                for (int r = 0; r < EACH; r++) of_key[r] = __shfl_sync(0xffffffff, weight[r], i);
                for (int part = 0; part < PARTS; part++) {
                    const int column = start + 32 * part + lane;
                    const float of_v = column < g.e ? v[(first + i) * g.e + column] : 0;
                    for (int r = 0; r < EACH; r++) value[r][part] += of_key[r] * of_v;
                }
            }
        }
        for (int r = 0; r < EACH; r++) {
            const int row = first_row + warp * EACH + r;
            for (int step = 16; step > 0; step /= 2) sum[r] += __shfl_xor_sync(0xffffffff, sum[r], step);
            for (int part = 0; part < PARTS; part++) {
                const int column = start + 32 * part + lane;
                if (row < g.s && column < g.e) y[row * g.e + column] = value[r][part] / sum[r];
            }
        }
    }
}

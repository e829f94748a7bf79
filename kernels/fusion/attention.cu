// softmax(q × kᵀ * scale + mask) × v in one launch, without the matrix of scores in memory. A warp has a query: of 32
// keys at a time each lane has a score, and the sum of the values so far is scaled down whenever a larger score comes
// (online softmax: Milakov and Gimelshein, 2018). Lanes go along the columns of v, 32 at a time; the scores are computed
// anew for each 32.
// Expected: one launch for five; scores, S × T for each head, neither written nor read three times.
// Right on an H200 (2026-11-26); not timed there.
#include <math_constants.h>

constexpr int QUERIES = 4;  // of a block, a warp each

struct Attention {
    int queries;  // of all images and heads
    int heads, s, t, d, e;
    int mask_image, mask_head, mask_row, mask_column;  // elements from one to the next; 0 repeats
    float scale;
};

extern "C" __global__ void attention(const float *q, const float *k, const float *v, const float *mask, float *y,
                                     Attention g) {
    const int query = blockIdx.x * QUERIES + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (query >= g.queries) return;
    const int head = query / g.s, row = query - head * g.s;  // head of all images
    q += size_t(query) * g.d;
    k += size_t(head) * g.t * g.d;
    v += size_t(head) * g.t * g.e;
    y += size_t(query) * g.e;
    if (mask) mask += head / g.heads * g.mask_image + head % g.heads * g.mask_head + row * g.mask_row;
    for (int start = 0; start < g.e; start += 32) {
        const int column = min(start + lane, g.e - 1);
        float largest = -CUDART_INF_F, sum = 0, value = 0;
        for (int first = 0; first < g.t; first += 32) {
            const int key = first + lane;
            float score = -CUDART_INF_F;
            if (key < g.t) {
                score = 0;
                for (int i = 0; i < g.d; i++) score += q[i] * k[key * g.d + i];
                score *= g.scale;
                if (mask) score += mask[key * g.mask_column];
            }
            float top = score;
            for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, step));
            top = fmaxf(top, largest);
            const float less = top == -CUDART_INF_F ? 1 : expf(largest - top);  // all keys so far are masked
            const float weight = score == -CUDART_INF_F ? 0 : expf(score - top);
            largest = top, value *= less, sum *= less;
            for (int i = 0; i < 32 && first + i < g.t; i++) {
                const float of_key = __shfl_sync(0xffffffff, weight, i);
                sum += of_key;
                value += of_key * v[(first + i) * g.e + column];
            }
        }
        if (start + lane < g.e) y[start + lane] = value / sum;
    }
}

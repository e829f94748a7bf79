// What steps 2 and 3 share: which tile of which group a block computes, and the way of its sums into y.
#pragma once
#include "index.cuh"
#include "tile_product.cuh"

// Blocks run through the tiles of filters first: neighbours at work read the same pixels of x.
struct ForwardTile {
    int group, first_filter, first_pixel;  // first_filter: within the group

    __device__ __forceinline__ explicit ForwardTile(const Sizes &g) {
        const int filter_tiles = (g.group_k - 1) / BM + 1, pixel_tiles = (g.n * g.p * g.q - 1) / BN + 1;
        first_filter = blockIdx.x % filter_tiles * BM;
        first_pixel = blockIdx.x / filter_tiles % pixel_tiles * BN;
        group = blockIdx.x / filter_tiles / pixel_tiles;
    }
};

// The filters of a tile: rows of w, KCRS.
__device__ __forceinline__ MatrixRows filters(const float *w, const ForwardTile &tile, const Sizes &g) {
    return MatrixRows(w + size_t(tile.group) * g.group_k * g.depth, tile.first_filter, g.group_k, g.depth);
}

__device__ __forceinline__ void store(const float (&sum)[TM][TN], const float *bias, float *y, const ForwardTile &tile,
                                      const Sizes &g, int relu) {
#pragma unroll
    for (int j = 0; j < TN; j++) {
        const int m = tile.first_pixel + tile_column() + j * COLUMN_STEP;
        if (m >= g.n * g.p * g.q) {
            break;
        }
        const int n = m / (g.p * g.q);
        float *const pixel = y + n * g.k * g.p * g.q + (m - n * g.p * g.q);
#pragma unroll
        for (int i = 0; i < TM; i++) {
            const int filter = tile.first_filter + tile_row() + i, k = tile.group * g.group_k + filter;
            if (filter < g.group_k) {
                const float value = sum[i][j] + (bias ? bias[k] : 0);
                pixel[k * g.p * g.q] = relu && value < 0 ? 0 : value;
            }
        }
    }
}

// Winograd's F(2×2, 3×3): 2 × 2 elements of y from 4 × 4 of x with 16 products and not 36 (Lavin and Gray, 2015, arXiv
// 1509.09308). NCHW, float32, 3 × 3 filters with stride and dilation 1, any padding and groups.
// For one channel and one tile: y = Aᵀ [(G w Gᵀ) ⊙ (Bᵀ x B)] A. The sum over channels comes before the last step, so
// the products of each of the 16 places ("xi") are a matrix product, of filters × channels by channels × tiles:
//   conv_winograd_filters    u[xi][k][c] = (G w Gᵀ)[xi]
//   conv_winograd_inputs     v[xi][c][t] = (Bᵀ x B)[xi], tiles of 4 × 4 that overlap by two
//   conv_winograd_products   m[xi][k][t] = sum over c of u · v, 16 products of steps 2 and 3's tiles
//   conv_winograd_outputs    y = Aᵀ m A, bias, ReLU
// Expected: 2.25 × fewer multiplications than a direct sum, and memory in exchange: v is four times x, m four times y,
// both written and read, so that it pays where there are many channels. A tile at the edge of an odd height or width is
// computed whole. Error: differences of neighbours lose digits, but a sum has as many addends as there are channels,
// and not nine times as many.
// Reached: 214 µs for conv2_x's 3 × 3, with 206 MB of workspace, 145 µs for conv4_x's: 0.88 and 0.43 of step 3's time.
// The relative errors are 2.6e-7 and 5.0e-7, where step 3's are 4.3e-7 and 8.4e-7: the shorter sums win.
#include "sizes.cuh"
#include "tile_product.cuh"

// XI = 16 below: the places of a transformed tile.

// A row or column through Bᵀ, G and Aᵀ.
__device__ __forceinline__ void input_transform(const float (&d)[4], float (&to)[4]) {
    to[0] = d[0] - d[2], to[1] = d[1] + d[2], to[2] = d[2] - d[1], to[3] = d[1] - d[3];
}

__device__ __forceinline__ void filter_transform(const float (&g)[3], float (&to)[4]) {
    to[0] = g[0], to[1] = 0.5f * (g[0] + g[1] + g[2]), to[2] = 0.5f * (g[0] - g[1] + g[2]), to[3] = g[2];
}

__device__ __forceinline__ void output_transform(const float (&m)[4], float (&to)[2]) {
    to[0] = m[0] + m[1] + m[2], to[1] = m[1] - m[2] - m[3];
}

// A thread for each filter and channel. `u`: XI × k × group_c.
extern "C" __global__ void conv_winograd_filters(const float *__restrict__ w, float *__restrict__ u, Sizes g) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, count = g.k * g.group_c;
    if (i >= count) {
        return;
    }
    float rows[3][4];  // w Gᵀ
#pragma unroll
    for (int r = 0; r < 3; r++) {
        const float row[3] = {w[i * 9 + r * 3], w[i * 9 + r * 3 + 1], w[i * 9 + r * 3 + 2]};
        filter_transform(row, rows[r]);
    }
#pragma unroll
    for (int s = 0; s < 4; s++) {
        const float column[3] = {rows[0][s], rows[1][s], rows[2][s]};
        float found[4];
        filter_transform(column, found);
#pragma unroll
        for (int r = 0; r < 4; r++) {
            u[size_t(r * 4 + s) * count + i] = found[r];
        }
    }
}

// A thread for each tile; blocks along y: channels. `v`: XI × c × tiles.
extern "C" __global__ void conv_winograd_inputs(const float *__restrict__ x, float *__restrict__ v, Sizes g) {
    const int across = (g.q + 1) / 2, down = (g.p + 1) / 2, tiles = g.n * down * across;
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= tiles) {
        return;
    }
    const int n = t / across / down, h0 = t / across % down * 2 - g.pad_h, w0 = t % across * 2 - g.pad_w;
    for (int c = blockIdx.y; c < g.c; c += gridDim.y) {
        const float *const image = x + (n * g.c + c) * g.h * g.w;
        float rows[4][4];  // x B
#pragma unroll
        for (int r = 0; r < 4; r++) {
            float row[4];
#pragma unroll
            for (int s = 0; s < 4; s++) {
                const int h = h0 + r, w = w0 + s;
                row[s] = h >= 0 && h < g.h && w >= 0 && w < g.w ? image[h * g.w + w] : 0;
            }
            input_transform(row, rows[r]);
        }
        float *const to = v + size_t(c) * tiles + t;
        const size_t from_xi_to_xi = size_t(g.c) * tiles;
#pragma unroll
        for (int s = 0; s < 4; s++) {
            const float column[4] = {rows[0][s], rows[1][s], rows[2][s], rows[3][s]};
            float found[4];
            input_transform(column, found);
#pragma unroll
            for (int r = 0; r < 4; r++) {
                to[(r * 4 + s) * from_xi_to_xi] = found[r];
            }
        }
    }
}

// Blocks along x: tiles of m, along y: xi, along z: groups. `m`: XI × k × tiles.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    conv_winograd_products(const float *__restrict__ u, const float *__restrict__ v, float *__restrict__ m, Sizes g) {
    const int tiles = g.n * ((g.p + 1) / 2) * ((g.q + 1) / 2), xi = blockIdx.y, group = blockIdx.z;
    const int filter_tiles = (g.group_k - 1) / BM + 1;
    const int first_filter = blockIdx.x % filter_tiles * BM, first_tile = blockIdx.x / filter_tiles * BN;
    const MatrixRows filters(u + (size_t(xi) * g.k + group * g.group_k) * g.group_c, first_filter, g.group_k,
                             g.group_c);
    const MatrixColumns inputs(v + (size_t(xi) * g.c + group * g.group_c) * tiles, first_tile + threadIdx.x, tiles,
                               tiles);
    float sum[TM][TN] = {};
    multiply_tiles(filters, inputs, 0, g.group_c, sum);
    float *const of_group = m + (size_t(xi) * g.k + group * g.group_k) * tiles;
#pragma unroll
    for (int i = 0; i < TM; i++) {
#pragma unroll
        for (int j = 0; j < TN; j++) {
            const int filter = first_filter + tile_row() + i, t = first_tile + tile_column() + j * COLUMN_STEP;
            if (filter < g.group_k && t < tiles) {
                of_group[size_t(filter) * tiles + t] = sum[i][j];
            }
        }
    }
}

// A thread for each tile; blocks along y: filters.
extern "C" __global__ void conv_winograd_outputs(const float *__restrict__ m, const float *__restrict__ bias,
                                                 float *__restrict__ y, Sizes g, int relu) {
    const int across = (g.q + 1) / 2, down = (g.p + 1) / 2, tiles = g.n * down * across;
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= tiles) {
        return;
    }
    const int n = t / across / down, p0 = t / across % down * 2, q0 = t % across * 2;
    for (int k = blockIdx.y; k < g.k; k += gridDim.y) {
        const float *const from = m + size_t(k) * tiles + t;
        const size_t from_xi_to_xi = size_t(g.k) * tiles;
        float rows[4][2];  // m A
#pragma unroll
        for (int r = 0; r < 4; r++) {
            float row[4];
#pragma unroll
            for (int s = 0; s < 4; s++) {
                row[s] = from[(r * 4 + s) * from_xi_to_xi];
            }
            output_transform(row, rows[r]);
        }
        float *const image = y + (n * g.k + k) * g.p * g.q;
#pragma unroll
        for (int s = 0; s < 2; s++) {
            const float column[4] = {rows[0][s], rows[1][s], rows[2][s], rows[3][s]};
            float found[2];
            output_transform(column, found);
#pragma unroll
            for (int r = 0; r < 2; r++) {
                if (p0 + r < g.p && q0 + s < g.q) {
                    const float value = found[r] + (bias ? bias[k] : 0);
                    image[(p0 + r) * g.q + q0 + s] = relu && value < 0 ? 0 : value;
                }
            }
        }
    }
}

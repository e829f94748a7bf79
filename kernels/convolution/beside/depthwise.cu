// Depthwise convolution: as many groups as channels, a filter for each. FP16 in NHWC, FP32 in NCHW.
// An element of y takes R · S products, 9 for 3 × 3: 18 operations for 4 bytes that are moved in FP16. The memory is
// the limit, and tensor cores have nothing to do: there is no sum over channels, so no matrix product.
//
// forward          y[n, p, q, c] = Σ x[n, p · stride − pad + r · dilation, q · ..., c] · w[c, r, s]
// backward_data    dx[n, h, w, c] = Σ dy[n, p, q, c] · w[c, r, s] over all p, q, r, s that reach h, w
// backward_filter  dw[c, r, s] = Σ x · dy over images and pixels; blocks leave partial sums, a second kernel adds them
// The kernels *_any take any filter, stride and dilation at run time; the others have equal strides, and any dilation
// where these are 1 (DILATED).
//
// A thread computes ROWS × WIDE elements of y for VEC neighbouring channels. It takes the rows of x one after the
// other; each goes, from registers, into all the sums that need it. At 3 × 3 with 7 × 2 elements for a thread, x is
// loaded 9/7 · 4/2 times, and the memory sees one of these: what neighbouring threads share is in the L1 or L2 cache.
// A block of the NHWC kernels has CHANNELS channels: CHANNELS / VEC threads in x, pixels in y. Its filters, which lie
// channel after channel, come to shared memory in whole lines; a thread's R · S · VEC values then go to registers.
// While they are on their way, the first AHEAD rows of x are, too. In NCHW (VEC 1), neighbouring threads have
// neighbouring columns, and a warp mostly has one channel.
// Expected: the time of reading x and writing y once, as a copy of so many bytes takes it.
// Reached, 3 × 3 layers of MobileNet at batch 32, FP16, of the speed of cuDNN 9.19's fastest plan, geometric mean and
// least: forward 1.19 and 1.05, backward_data 1.77 and 1.33, backward_filter 1.06 and 1.00; FP32 forward 1.66 and 1.40
// (forward in FP16 all layers, the others three of them; NVIDIA H100 80GB HBM3, 2026-11-26). Of the speed of
// cudaMemcpyAsync from x to y, forward with stride 1: from 0.81, 112 × 112, to 0.69, 7 × 7 (2026-11-23).
// ReLU is a bound (`least`; vectors.cuh). A day before it was fmaxf, which makes NaN 0; then a test for each element
// whether ReLU is wanted, with which four of the five layers of stride 1 took 4 to 25 % longer than now, and the others
// within 2 % as long. Machine code for sm_90, NVRTC 13.0: instructions and registers with fmaxf, with the test, now:
//     FP16, stride 1   1831, 128   1892, 133   1614, 128        FP32, stride 1    350, 40    349, 40    337, 38
//     FP16, stride 2    954, 164   1001, 166    925, 162        FP32, stride 2    420, 48    434, 48    413, 48
// A multiprocessor holds three blocks of 133 registers, and four of 128: of the 448 blocks of 14 × 14, which gained
// most, an H100 holds 396 by three; 7 × 7 has 256, and gained nothing.
// forward_any has 302 instructions in FP16 (303, 304), 288 in FP32 (251, 290): for what lies outside of x ptxas took
// predicates there with fmaxf, and takes branches since, with and without a ReLU.
// With AHEAD at 0 forward took some 1.2 times as long: every block waited for its filters before it asked for x.
// Tried and left out: other tiles, of 2 to 8 channels and 1 × 2 to 7 × 7 elements (depthwise.py has the fastest). At
// most 96 or 80 registers, for five or six blocks on a multiprocessor: they spill, and take 1.3 to 2 times as long.
// Read-only loads, also such that bring 256 bytes to the L2, and stores that mark y as used once: from no gain to 2 %.
#include "places.cuh"
#include "sizes.cuh"
#include "vectors.cuh"

constexpr int BLOCK = 128;  // threads per block

// What a thread works on: tile (`down`, `across`) of an image and of a channel, the first of VEC.
struct Work {
    int image, channel, down, across;
};
template <bool NHWC, int VEC, int CHANNELS>
__device__ __forceinline__ Work work(unsigned number, int c, int tiles_down, int tiles_across) {
    Work mine;
    if (NHWC) {
        const unsigned chunks = (c + CHANNELS - 1) / CHANNELS;
        mine.channel = number % chunks * CHANNELS + threadIdx.x * VEC;
        number = number / chunks * blockDim.y + threadIdx.y;
        mine.across = number % tiles_across, number /= tiles_across;
        mine.down = number % tiles_down, mine.image = number / tiles_down;
    } else {
        number = number * BLOCK + threadIdx.x;
        mine.across = number % tiles_across, number /= tiles_across;
        mine.down = number % tiles_down, number /= tiles_down;
        mine.channel = number % c, mine.image = number / c;
    }
    return mine;
}

// Dilation d and stride 1: pixels of y with equal rows modulo d, and equal columns, meet pixels of x of one such lattice
// alone, and there the dilation is 1. Images are numbered lattice by lattice: of number `image`, changes sizes, padding
// and steps to those of its lattice, moves x and y to its first pixels, and returns the image itself.
__device__ __forceinline__ int along(bool dilated, int size, int dilation) {
    return dilated ? (size - 1) / dilation + 1 : size;
}
template <bool DILATED, bool NHWC, typename X, typename Y>
__device__ __forceinline__ int lattice(int image, Sizes &g, Strides<NHWC> &of_x, Strides<NHWC> &of_y, X *&x, Y *&y) {
    if constexpr (DILATED) {
        const int high = g.dilation_h, wide = g.dilation_w, number = image % (high * wide);
        const int p = number / wide, q = number - p * wide;
        const int h = (p - g.pad_h % high + high) % high, w = (q - g.pad_w % wide + wide) % wide;
        image /= high * wide;
        x += ptrdiff_t(h) * of_x.row + ptrdiff_t(w) * of_x.column;
        y += ptrdiff_t(p) * of_y.row + ptrdiff_t(q) * of_y.column;
        of_x.row *= high, of_x.column *= wide, of_y.row *= high, of_y.column *= wide;
        g.pad_h = (g.pad_h - p + h) / high, g.pad_w = (g.pad_w - q + w) / wide;
        g.h = (g.h - h + high - 1) / high, g.w = (g.w - w + wide - 1) / wide;
        g.p = (g.p - p + high - 1) / high, g.q = (g.q - q + wide - 1) / wide;
    }
    return image;
}

// The filters of a thread's channels: to[tap * VEC + v]. All threads of the block call it.
template <typename T, bool NHWC, int VEC, int CHANNELS, int TAPS>
__device__ __forceinline__ void load_filters(float *to, const T *w, int c, int channel, bool inside) {
    if constexpr (NHWC) {
        __shared__ __align__(16) T filters[CHANNELS * TAPS];
        const int first = channel - threadIdx.x * VEC;
        const int count = min(CHANNELS, c - first) * TAPS / VEC;  // vectors; VEC divides c
        for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < count; i += BLOCK) {
            using Vector = typename Packed<T, VEC>::type;
            reinterpret_cast<Vector *>(filters)[i] = load<VEC>(w + size_t(first) * TAPS + i * VEC);
        }
        __syncthreads();
        if (!inside) return;
        float values[TAPS * VEC];
#pragma unroll
        for (int k = 0; k < TAPS; k++) {
            unpack(values + k * VEC, load<VEC>(filters + (threadIdx.x * TAPS + k) * VEC));
        }
#pragma unroll
        for (int k = 0; k < TAPS * VEC; k++) {
            to[k % TAPS * VEC + k / TAPS] = values[k];
        }
    } else if (inside) {
#pragma unroll
        for (int k = 0; k < TAPS; k++) {
            unpack(to + k, load<1>(w + size_t(channel) * TAPS + k));
        }
    }
}

// COUNT neighbouring vectors of a row, from `column` on; zeros outside the image.
template <int VEC, int COUNT, typename T, typename Vector>
__device__ __forceinline__ void load_row(
    Vector (&to)[COUNT], const T *image, int row, int column, int height, int width, int row_step, int column_step) {
    const bool inside = unsigned(row) < unsigned(height);
    const T *from = image + ptrdiff_t(row) * row_step;
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        const int at = column + k;
        to[k] = inside && unsigned(at) < unsigned(width) ? load<VEC>(from + ptrdiff_t(at) * column_step) : Vector{};
    }
}

// `least`: of the results; 0 for ReLU, -∞ for none.
template <typename T, bool NHWC, int VEC, int CHANNELS, int R, int S, int STRIDE, int ROWS, int WIDE, int AHEAD,
          bool DILATED = false>
__global__ void __launch_bounds__(BLOCK)
    depthwise_forward(const T *x, const T *w, const float *bias, T *y, Sizes g, float least) {
    constexpr int COLUMNS = (WIDE - 1) * STRIDE + S, LINES = (ROWS - 1) * STRIDE + R;  // of x, for a tile of y
    constexpr int OPEN = (R - 1) / STRIDE + 1;  // rows of y that a row of x can be needed for
    using Vector = typename Packed<T, VEC>::type;
    const int most_p = along(DILATED, g.p, g.dilation_h), most_q = along(DILATED, g.q, g.dilation_w);
    const int tiles_down = (most_p + ROWS - 1) / ROWS, tiles_across = (most_q + WIDE - 1) / WIDE;
    const Work mine = work<NHWC, VEC, CHANNELS>(blockIdx.x, g.c, tiles_down, tiles_across);
    Strides<NHWC> of_x(g.c, g.h, g.w), of_y(g.c, g.p, g.q);
    const int height = g.h, width = g.w, high = g.p, wide = g.q;
    const int image = lattice<DILATED>(mine.image, g, of_x, of_y, x, y);
    const bool inside = image < g.n && mine.channel < g.c;
    const T *from = x + of_x.first(image, mine.channel, height, width);
    const int first_p = mine.down * ROWS, first_q = mine.across * WIDE;
    const int top = first_p * STRIDE - g.pad_h, left = first_q * STRIDE - g.pad_w;
    Vector line[LINES][COLUMNS];
    auto load_line = [&](int j) {
        load_row<VEC>(line[j], from, top + j, left, inside ? g.h : 0, g.w, of_x.row, of_x.column);
    };
#pragma unroll
    for (int j = 0; j < AHEAD && j < LINES; j++) load_line(j);
    float weight[R * S * VEC];
    load_filters<T, NHWC, VEC, CHANNELS, R * S>(weight, w, g.c, mine.channel, inside);
    if (!inside) return;
    T *to = y + of_y.first(image, mine.channel, high, wide) + ptrdiff_t(first_p) * of_y.row +
            ptrdiff_t(first_q) * of_y.column;
    float start[VEC] = {};
    if (bias) {
#pragma unroll
        for (int v = 0; v < VEC; v++) start[v] = bias[mine.channel + v];
    }
    const auto bound = bound_of<T>(least);
    float sum[OPEN][WIDE][VEC];
#pragma unroll
    for (int j = 0; j < LINES; j++) {
        if (j + AHEAD < LINES) load_line(j + AHEAD);
        float value[COLUMNS][VEC];
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) unpack(value[k], line[j][k]);
#pragma unroll
        for (int r = 0; r < R; r++) {
            const int row = (j - r) / STRIDE;  // of the thread's rows of y
            if (j < r || (j - r) % STRIDE || row >= ROWS) continue;
#pragma unroll
            for (int a = 0; a < WIDE; a++) {
                float(&result)[VEC] = sum[row % OPEN][a];
#pragma unroll
                for (int v = 0; v < VEC; v++) {
                    if (r == 0) result[v] = start[v];
#pragma unroll
                    for (int s = 0; s < S; s++) {
                        result[v] += value[a * STRIDE + s][v] * weight[(r * S + s) * VEC + v];
                    }
                }
                if (r < R - 1) continue;
                Vector packed;
                pack(packed, result);
                packed = at_least(packed, bound);  // of halves: the greater of two rounded is the greater, rounded
                if (first_p + row < g.p && first_q + a < g.q) {
                    *reinterpret_cast<Vector *>(to + ptrdiff_t(row) * of_y.row + ptrdiff_t(a) * of_y.column) = packed;
                }
            }
        }
    }
}

// Rows STRIDE · g − pad ... + STRIDE − 1 of dx, group g, get products of rows g, g − 1, ... of dy: row g − k of dy
// meets the filter's row f + STRIDE · k at row f of the group. Columns likewise. So no thread asks which products there
// are, and stride 1 and 2 are one kernel. A thread computes ROWS × WIDE groups.
template <typename T, bool NHWC, int VEC, int CHANNELS, int R, int S, int STRIDE, int ROWS, int WIDE, int AHEAD,
          bool DILATED = false>
__global__ void __launch_bounds__(BLOCK)
    depthwise_backward_data(const T *dy, const T *w, T *dx, Sizes g) {
    constexpr int BEFORE_R = (R - 1) / STRIDE, BEFORE_S = (S - 1) / STRIDE;  // earlier rows of dy that a group needs
    constexpr int OPEN = BEFORE_R + 1, COLUMNS = WIDE + BEFORE_S, LINES = ROWS + BEFORE_R;
    using Vector = typename Packed<T, VEC>::type;
    const int groups_down =
        DILATED ? along(true, g.h, g.dilation_h) : (g.h - 1 + g.pad_h) / STRIDE - g.pad_h / STRIDE + 1;
    const int groups_across =
        DILATED ? along(true, g.w, g.dilation_w) : (g.w - 1 + g.pad_w) / STRIDE - g.pad_w / STRIDE + 1;
    const Work mine = work<NHWC, VEC, CHANNELS>(
        blockIdx.x, g.c, (groups_down + ROWS - 1) / ROWS, (groups_across + WIDE - 1) / WIDE);
    Strides<NHWC> of_x(g.c, g.h, g.w), of_y(g.c, g.p, g.q);
    const int height = g.h, width = g.w, high = g.p, wide = g.q;
    const int image = lattice<DILATED>(mine.image, g, of_x, of_y, dx, dy);
    const bool inside = image < g.n && mine.channel < g.c;
    const T *from = dy + of_y.first(image, mine.channel, high, wide);
    T *to = dx + of_x.first(image, mine.channel, height, width);
    const int first_down = g.pad_h / STRIDE, first_across = g.pad_w / STRIDE;  // groups before these lie in the padding
    const int down = first_down + mine.down * ROWS, across = first_across + mine.across * WIDE;
    Vector line[LINES][COLUMNS];
    auto load_line = [&](int j) {
        load_row<VEC>(line[j], from, down - BEFORE_R + j, across - BEFORE_S, inside ? g.p : 0, g.q, of_y.row,
                      of_y.column);
    };
#pragma unroll
    for (int j = 0; j < AHEAD && j < LINES; j++) load_line(j);
    float weight[R * S * VEC];
    load_filters<T, NHWC, VEC, CHANNELS, R * S>(weight, w, g.c, mine.channel, inside);
    if (!inside) return;
    const int top = down * STRIDE - g.pad_h, left = across * STRIDE - g.pad_w;
    float sum[OPEN][STRIDE][WIDE * STRIDE][VEC];
#pragma unroll
    for (int j = 0; j < LINES; j++) {
        if (j + AHEAD < LINES) load_line(j + AHEAD);
        float value[COLUMNS][VEC];
#pragma unroll
        for (int k = 0; k < COLUMNS; k++) unpack(value[k], line[j][k]);
#pragma unroll
        for (int k = BEFORE_R; k >= 0; k--) {
            const int group = j - BEFORE_R + k;  // of the thread's
            if (group < 0 || group >= ROWS) continue;
#pragma unroll
            for (int f = 0; f < STRIDE; f++) {
                const int r = f + k * STRIDE;
#pragma unroll
                for (int a = 0; a < WIDE * STRIDE; a++) {
                    float(&result)[VEC] = sum[group % OPEN][f][a];
#pragma unroll
                    for (int v = 0; v < VEC; v++) {
                        if (k == BEFORE_R) result[v] = 0;
#pragma unroll
                        for (int m = 0; m <= BEFORE_S; m++) {
                            const int s = a % STRIDE + m * STRIDE;
                            if (r >= R || s >= S) continue;
                            result[v] += value[a / STRIDE + BEFORE_S - m][v] * weight[(r * S + s) * VEC + v];
                        }
                    }
                    const int row = top + group * STRIDE + f, column = left + a;
                    if (k == 0 && unsigned(row) < unsigned(g.h) && unsigned(column) < unsigned(g.w)) {
                        store<VEC>(to + ptrdiff_t(row) * of_x.row + ptrdiff_t(column) * of_x.column, result);
                    }
                }
            }
        }
    }
}

// Sums over a thread's tiles, then over the block's threads of a channel: partial[blocks of a chunk][R · S][c].
// A thread keeps the rows of dy that the next rows of x still need. The grid is `blocks` for each chunk of channels; in
// NCHW a chunk is one channel, and a block takes its tiles in turn.
template <typename T, bool NHWC, int VEC, int CHANNELS, int R, int S, int STRIDE, int ROWS, int WIDE,
          bool DILATED = false>
__global__ void __launch_bounds__(BLOCK)
    depthwise_backward_filter(const T *x, const T *dy, float *partial, Sizes g, int blocks) {
    constexpr int COLUMNS = (WIDE - 1) * STRIDE + S, OPEN = (R - 1) / STRIDE + 1, TAPS = R * S;
    constexpr int LANES = NHWC ? CHANNELS / VEC : 1, COPIES = BLOCK / LANES;  // threads of a block in x; in y
    using Vector = typename Packed<T, VEC>::type;
    const int tiles_down = (along(DILATED, g.p, g.dilation_h) + ROWS - 1) / ROWS;
    const int tiles_across = (along(DILATED, g.q, g.dilation_w) + WIDE - 1) / WIDE;
    const int images = DILATED ? g.n * g.dilation_h * g.dilation_w : g.n;
    const int chunks = NHWC ? (g.c + CHANNELS - 1) / CHANNELS : g.c;
    const int lane = NHWC ? threadIdx.x : 0, copy = NHWC ? threadIdx.y : threadIdx.x;
    const int first_channel = blockIdx.x % chunks * (NHWC ? CHANNELS : 1), channel = first_channel + lane * VEC;
    const int block = blockIdx.x / chunks;
    const Strides<NHWC> all_x(g.c, g.h, g.w), all_y(g.c, g.p, g.q);
    const Sizes all = g;
    float sum[TAPS][VEC] = {};
    const unsigned tiles = channel < g.c ? unsigned(images) * tiles_down * tiles_across : 0;
    for (unsigned tile = block * COPIES + copy; tile < tiles; tile += blocks * COPIES) {
        const int across = tile % tiles_across, down = tile / tiles_across % tiles_down;
        const int number = tile / tiles_across / tiles_down;
        Strides<NHWC> of_x = all_x, of_y = all_y;
        const T *from_x = x, *from_y = dy;
        g = all;
        const int image = lattice<DILATED>(number, g, of_x, of_y, from_x, from_y);
        from_x += of_x.first(image, channel, all.h, all.w), from_y += of_y.first(image, channel, all.p, all.q);
        const int first_p = down * ROWS, first_q = across * WIDE;
        const int top = first_p * STRIDE - g.pad_h, left = first_q * STRIDE - g.pad_w;
        float grad[OPEN][WIDE][VEC];
#pragma unroll
        for (int j = 0; j < (ROWS - 1) * STRIDE + R; j++) {
            Vector line[COLUMNS];
            load_row<VEC>(line, from_x, top + j, left, g.h, g.w, of_x.row, of_x.column);
            if (j % STRIDE == 0 && j / STRIDE < ROWS) {
                Vector grads[WIDE];
                load_row<VEC>(grads, from_y, first_p + j / STRIDE, first_q, g.p, g.q, of_y.row, of_y.column);
#pragma unroll
                for (int a = 0; a < WIDE; a++) unpack(grad[j / STRIDE % OPEN][a], grads[a]);
            }
            float value[COLUMNS][VEC];
#pragma unroll
            for (int k = 0; k < COLUMNS; k++) unpack(value[k], line[k]);
#pragma unroll
            for (int r = 0; r < R; r++) {
                const int row = (j - r) / STRIDE;
                if (j < r || (j - r) % STRIDE || row >= ROWS) continue;
#pragma unroll
                for (int s = 0; s < S; s++) {
#pragma unroll
                    for (int a = 0; a < WIDE; a++) {
#pragma unroll
                        for (int v = 0; v < VEC; v++) {
                            sum[r * S + s][v] += value[a * STRIDE + s][v] * grad[row % OPEN][a][v];
                        }
                    }
                }
            }
        }
    }
    // [tap][channel] for each copy, so that neighbouring threads store and load neighbouring vectors.
    constexpr int OF_TAP = LANES * VEC, SUMS = TAPS * OF_TAP, PART = VEC < 4 ? VEC : 4;
    __shared__ __align__(16) float shared[COPIES][SUMS];
#pragma unroll
    for (int tap = 0; tap < TAPS; tap++) {
#pragma unroll
        for (int v = 0; v < VEC; v += PART) store<PART>(&shared[copy][tap * OF_TAP + lane * VEC + v], &sum[tap][v]);
    }
    __syncthreads();
    for (int i = copy * LANES + lane; i < SUMS; i += BLOCK) {
        const int of = first_channel + i % OF_TAP;
        if (of >= g.c) continue;
        float total = 0;
#pragma unroll
        for (int k = 0; k < COPIES; k++) total += shared[k][i];
        partial[(size_t(block) * TAPS + i / OF_TAP) * g.c + of] = total;
    }
}

// dw[channel][tap] = Σ partial[block][tap][channel]. 32 × 32 threads for 32 elements; the same order of additions in
// every run.
template <typename T> __global__ void __launch_bounds__(1024) depthwise_add_partial(
    const float *partial, T *dw, int channels, int taps, int blocks) {
    __shared__ float shared[32][33];
    const int i = blockIdx.x * 32 + threadIdx.x, count = channels * taps;
    float sum = 0;
    if (i < count) {
        for (int block = threadIdx.y; block < blocks; block += 32) sum += partial[size_t(block) * count + i];
    }
    shared[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    sum = shared[threadIdx.x][threadIdx.y];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    const int mine = blockIdx.x * 32 + threadIdx.y;
    if (threadIdx.x == 0 && mine < count) dw[mine % channels * taps + mine / channels] = T(sum);
}

// -- any filter, stride and dilation: one element of the result for each thread ---------------------------------------

template <typename T, bool NHWC>
__global__ void __launch_bounds__(BLOCK)
    depthwise_forward_any(const T *x, const T *w, const float *bias, T *y, Sizes g, float least) {
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= unsigned(g.n) * g.c * g.p * g.q) return;
    const Element<NHWC> at(i, g.c, g.p, g.q);
    const Strides<NHWC> of_x(g.c, g.h, g.w);
    const T *from = x + of_x.first(at.image, at.channel, g.h, g.w);
    const T *filter = w + size_t(at.channel) * g.r * g.s;
    float sum = bias ? bias[at.channel] : 0;
    for (int r = 0; r < g.r; r++) {
        const int row = at.row * g.stride_h - g.pad_h + r * g.dilation_h;
        if (unsigned(row) >= unsigned(g.h)) continue;
        for (int s = 0; s < g.s; s++) {
            const int column = at.column * g.stride_w - g.pad_w + s * g.dilation_w;
            if (unsigned(column) >= unsigned(g.w)) continue;
            const T value = from[ptrdiff_t(row) * of_x.row + ptrdiff_t(column) * of_x.column];
            sum += float(value) * float(filter[r * g.s + s]);
        }
    }
    y[i] = T(at_least(sum, least));
}

template <typename T, bool NHWC>
__global__ void __launch_bounds__(BLOCK)
    depthwise_backward_data_any(const T *dy, const T *w, T *dx, Sizes g) {
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= unsigned(g.n) * g.c * g.h * g.w) return;
    const Element<NHWC> at(i, g.c, g.h, g.w);
    const Strides<NHWC> of_y(g.c, g.p, g.q);
    const T *from = dy + of_y.first(at.image, at.channel, g.p, g.q);
    const T *filter = w + size_t(at.channel) * g.r * g.s;
    float sum = 0;
    for (int r = 0; r < g.r; r++) {
        const int above = at.row + g.pad_h - r * g.dilation_h;  // of the window's first row, times the stride
        if (above < 0 || above % g.stride_h || above / g.stride_h >= g.p) continue;
        for (int s = 0; s < g.s; s++) {
            const int before = at.column + g.pad_w - s * g.dilation_w;
            if (before < 0 || before % g.stride_w || before / g.stride_w >= g.q) continue;
            const int p = above / g.stride_h, q = before / g.stride_w;
            const T value = from[ptrdiff_t(p) * of_y.row + ptrdiff_t(q) * of_y.column];
            sum += float(value) * float(filter[r * g.s + s]);
        }
    }
    dx[i] = T(sum);
}

// A block has one tap, 32 channels in NHWC and one in NCHW, and each of `blocks` takes its share of the pixels of y:
// partial[blocks][R · S][c].
template <typename T, bool NHWC>
__global__ void __launch_bounds__(BLOCK)
    depthwise_backward_filter_any(const T *x, const T *dy, float *partial, Sizes g, int blocks) {
    constexpr int LANES = NHWC ? 32 : 1, COPIES = BLOCK / LANES;
    const int taps = g.r * g.s, chunks = (g.c + LANES - 1) / LANES, tap = blockIdx.x / chunks % taps;
    const int block = blockIdx.x / chunks / taps, r = tap / g.s, s = tap - r * g.s;
    const int channel = blockIdx.x % chunks * LANES + threadIdx.x % LANES, copy = threadIdx.x / LANES;
    const Strides<NHWC> of_x(g.c, g.h, g.w), of_y(g.c, g.p, g.q);
    float sum = 0;
    const unsigned pixels = channel < g.c ? g.n * g.p * g.q : 0;
#pragma unroll 4
    for (unsigned i = block * COPIES + copy; i < pixels; i += blocks * COPIES) {
        const int image = i / g.q / g.p, y_row = i / g.q % g.p, y_column = i % g.q;
        const int row = y_row * g.stride_h - g.pad_h + r * g.dilation_h;
        const int column = y_column * g.stride_w - g.pad_w + s * g.dilation_w;
        if (unsigned(row) >= unsigned(g.h) || unsigned(column) >= unsigned(g.w)) continue;
        const T value = x[of_x.first(image, channel, g.h, g.w) + ptrdiff_t(row) * of_x.row +
                          ptrdiff_t(column) * of_x.column];
        const T grad = dy[of_y.first(image, channel, g.p, g.q) + ptrdiff_t(y_row) * of_y.row +
                          ptrdiff_t(y_column) * of_y.column];
        sum += float(value) * float(grad);
    }
    __shared__ float shared[BLOCK];
    for (int step = 16; step > 0 && !NHWC; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    shared[threadIdx.x] = sum;
    __syncthreads();
    if (copy == 0 && channel < g.c) {
        for (int k = 32; k < BLOCK; k += 32) sum += shared[k + threadIdx.x];
        partial[(size_t(block) * taps + tap) * g.c + channel] = sum;
    }
}

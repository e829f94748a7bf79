// Copies around step 5's kernels for convolutions that TMA cannot walk as they are: padded.py says which, and why.
// A thread writes 8 neighbours, 16 bytes. Where each element of a row comes from does not change from row to row: a block
// finds it once, so that no thread divides for each element.
// Expected: the time of memory for what is read and written, and 2 to 3 µs for the launch.
// Reached, copies and product, of the speed of cuDNN 9.19's fastest plan, over 40 convolutions drawn at random, the
// geometric mean and the least: forward 1.65 and 0.80, the gradient of x 1.51 and 1.12, that of w 1.39 and 0.75, of which
// four took other steps; three are below 0.8, two of w with strides (H200, 2026-11-27; two more processes are within 4 %
// of the means). When they were drawn, w had 1.23 and 0.38: 1 × 994 × 19 × 8, with 18 windows, took 43 µs, and cuDNN 16.
// What changed was for it, so that for w these are no longer unseen: a thread adds up the sums of four filters, where there
// were seven divisions for each element; 21 µs. AlexNet's second layer takes 83, 102 before, ResNeXt's 42, 39 before. Sums
// of one split, added by blocks of 32 threads, took 13 of 22 µs for 148 × 960 × 4 × 1.
#include <warplab/hopper.cuh>
#include "sizes.cuh"

constexpr int EIGHT = 8, NOWHERE = 1 << 29;  // NOWHERE: more than any column or channel, whatever is added

// Line number `line` of `to`: images × P × `width` pixels of `row` elements: taps of x, (r, s), of `pitch` channels each,
// zeros where there is nothing. `g`: the windows. A line, width × row, is a multiple of 8.
__device__ __forceinline__ void unroll_pixels(const half *x, half *to, const Sizes &g, int width, int row, int pitch,
                                              int line, int2 *places) {
    const int n = line / g.p, p = line - n * g.p, in_line = width * row / EIGHT;
    for (int at = threadIdx.x; at < row; at += blockDim.x) {  // from the pixel's first element in x, and columns to it
        const int tap = at / pitch, c = at - tap * pitch, r = tap / g.s, right = (tap - r * g.s) * g.dilation_w;
        const int h = p * g.stride_h - g.pad_h + r * g.dilation_h;
        const bool inside = c < g.c && r < g.r && unsigned(h) < unsigned(g.h);
        places[at] = inside ? make_int2((h * g.w + right) * g.c + c, right) : make_int2(0, NOWHERE);
    }
    __syncthreads();
    const half *image = x + size_t(n) * g.h * g.w * g.c;
    for (int i = threadIdx.x; i < in_line; i += blockDim.x) {
        const int q = i * EIGHT / row;
        int at = i * EIGHT - q * row, w = q * g.stride_w - g.pad_w;
        __align__(16) half found[EIGHT];
#pragma unroll
        for (int j = 0; j < EIGHT; j++) {
            const int2 place = places[at];
            found[j] = unsigned(w + place.y) < unsigned(g.w) ? image[place.x + w * g.c] : half(0);
            if (++at == row) {
                at = 0;
                w += g.stride_w;
            }
        }
        reinterpret_cast<uint4 *>(to)[size_t(line) * in_line + i] = *reinterpret_cast<const uint4 *>(found);
    }
}

// Vector number i of `to`: pixels of `row` elements, a multiple of 8, from pixels of `c`, then zeros.
__device__ __forceinline__ void pad_pixels(const half *x, half *to, int pixels, int c, int row, int i) {
    const int pixel = i / (row / EIGHT), at = (i - pixel * (row / EIGHT)) * EIGHT;
    if (pixel >= pixels) {
        return;
    }
    const half *const from = x + size_t(pixel) * c + at;
    __align__(16) half found[EIGHT];
    if (c % 2 == 0) {
#pragma unroll
        for (int j = 0; j < EIGHT; j += 2) {
            *reinterpret_cast<half2 *>(found + j) = at + j < c ? *reinterpret_cast<const half2 *>(from + j) : half2{};
        }
    } else {
#pragma unroll
        for (int j = 0; j < EIGHT; j++) {
            found[j] = at + j < c ? from[j] : half(0);
        }
    }
    reinterpret_cast<uint4 *>(to)[i] = *reinterpret_cast<const uint4 *>(found);
}

// Filters for such pixels, and for groups that are joined: `taps` rows of `row` elements, `inner` pixels of `pitch` each,
// with `high` rows of `channels`. Of the joined groups' channels a filter has those of its own; others are zeros, and so
// are filters up to the next multiple of 8.
struct Rows {
    int taps, inner, pitch, high, channels, row;
    int joined;  // groups in one

    __device__ __forceinline__ int first_channel(int k, const Sizes &g) const {
        return k / g.group_k % joined * g.group_c;
    }
};

__device__ __forceinline__ void unroll_filters(const half *w, half *to, const Sizes &g, const Rows &rows, int i,
                                               int2 *places) {
    for (int at = threadIdx.x; at < rows.row; at += blockDim.x) {  // from the row's first element in w, and the channel
        const int inner = at / rows.pitch, of_pixel = at - inner * rows.pitch, high = of_pixel / rows.channels;
        const int c = of_pixel - high * rows.channels;
        const bool inside = inner < rows.inner && high < rows.high;
        places[at] = inside ? make_int2((high * rows.inner + inner) * g.group_c + c, c) : make_int2(0, NOWHERE);
    }
    __syncthreads();
    const int in_row = rows.row / EIGHT, line = i / in_row, k = line / rows.taps, tap = line - k * rows.taps;
    if (k >= (g.k + EIGHT - 1) / EIGHT * EIGHT) {
        return;
    }
    const int first = rows.first_channel(k, g), inside = k < g.k ? g.group_c : 0;
    const half *from = w + (size_t(k) * g.r * g.s + tap * rows.high * rows.inner) * g.group_c - first;
    __align__(16) half found[EIGHT];
#pragma unroll
    for (int j = 0; j < EIGHT; j++) {
        const int2 place = places[(i - line * in_row) * EIGHT + j];
        found[j] = unsigned(place.y - first) < unsigned(inside) ? from[place.x] : half(0);
    }
    reinterpret_cast<uint4 *>(to)[i] = *reinterpret_cast<const uint4 *>(found);
}

// What comes before step 5, both at once: lines of pixels by the first `lines` blocks, or vectors of them where pixels
// only get more channels (`pitch` 0), filters by the others. Shared memory: 8 bytes for each element of a row.
extern "C" __global__ void conv_unroll(const half *__restrict__ x, half *__restrict__ x_to, Sizes of_x, int width,
                                       int row, int pitch, int lines, const half *__restrict__ w,
                                       half *__restrict__ w_to, Sizes of_w, Rows rows) {
    extern __shared__ int2 places[];
    let_next_kernel_start();
    const int block = blockIdx.x;
    if (block < lines && pitch == 0) {
        pad_pixels(x, x_to, of_x.n * of_x.h * of_x.w, of_x.c, row, block * blockDim.x + threadIdx.x);
    } else if (block < lines) {
        unroll_pixels(x, x_to, of_x, width, row, pitch, block, places);
    } else {
        unroll_filters(w, w_to, of_w, rows, (block - lines) * blockDim.x + threadIdx.x, places);
    }
    wait_for_kernel_before();  // another copy, which the next kernel waits for, too
}

// The other way: `to`, images × height × width × `c`, from images of `row` elements a pixel, in which those of all
// phases of a stride, (down, right) and c channels each, lie together.
extern "C" __global__ void conv_take_pixels(const half *__restrict__ from, half *__restrict__ to, int images,
                                            int height, int width, int c, int down, int right, int row) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * EIGHT, count = images * height * width * c;
    if (first >= count) {
        return;
    }
    wait_for_kernel_before();
    int pixel = first / c, channel = first - pixel * c, line = pixel / width, w = pixel - line * width;
    const int rows = (height - 1) / down + 1, columns = (width - 1) / right + 1;
    int n = line / height, h = line - n * height;
    const half *at = nullptr;  // of the pixel
    __align__(16) half found[EIGHT];
#pragma unroll
    for (int j = 0; j < EIGHT && first + j < count; j++) {
        if (!at) {
            at = from + (size_t(n * rows + h / down) * columns + w / right) * row + (h % down * right + w % right) * c;
        }
        found[j] = at[channel];
        if (++channel == c) {
            at = nullptr;
            channel = 0;
            if (++w == width) {
                w = 0;
                if (++h == height) {
                    h = 0;
                    n++;
                }
            }
        }
    }
    if (first + EIGHT <= count) {
        *reinterpret_cast<uint4 *>(to + first) = *reinterpret_cast<const uint4 *>(found);
    } else {
        for (int j = 0; first + j < count; j++) {
            to[first + j] = found[j];
        }
    }
}

// The gradient of filters from such rows: the splits' sums, in a fixed order. `filters`: of joined groups, of which each
// split has a multiple of 64 rows; `stride`: from a split to the next. A block's y, up to 8, shares the splits. A thread
// has the same element of TOGETHER filters: where it lies in a filter is divided out once.
constexpr int TOGETHER = 4;  // as in padded.py
extern "C" __global__ void conv_add_filters(const float *__restrict__ partial, half *__restrict__ dw, Sizes g,
                                            Rows rows, int filters, int stride, int splits) {
    __shared__ float sums[TOGETHER][256];
    __shared__ int starts[TOGETHER];  // of the filters in a split
    const int of_filter = g.r * g.s * g.group_c, parts = (of_filter - 1) / blockDim.x + 1;
    const int first = blockIdx.x / parts * TOGETHER, i = blockIdx.x % parts * blockDim.x + threadIdx.x;
    const int c = i % g.group_c, tap = i / g.group_c, inner = tap % rows.inner, line = tap / rows.inner;
    const int high = line % rows.high, above = line / rows.high;
    const int at = above * rows.row + inner * rows.pitch + high * rows.channels + c;
    if (threadIdx.y == 0 && threadIdx.x < TOGETHER) {
        const int k = first + threadIdx.x, of_group = k / filters;
        const int there = of_group * ((filters - 1) / 64 + 1) * 64 + k - of_group * filters;
        starts[threadIdx.x] = there * rows.taps * rows.row + rows.first_channel(k, g);
    }
    __syncthreads();
    const int here = i < of_filter ? min(g.k - first, TOGETHER) : 0, own = threadIdx.y * blockDim.x + threadIdx.x;
    float sum[TOGETHER] = {};
    wait_for_kernel_before();
    for (int split = threadIdx.y; split < splits; split += blockDim.y) {
#pragma unroll
        for (int j = 0; j < TOGETHER; j++) {
            sum[j] += j < here ? partial[size_t(split) * stride + starts[j] + at] : 0;
        }
    }
#pragma unroll
    for (int j = 0; j < TOGETHER; j++) {
        sums[j][own] = sum[j];
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < TOGETHER; j++) {
        if (threadIdx.y == 0 && j < here) {
            for (int y = 1; y < blockDim.y; y++) {
                sum[j] += sums[j][y * blockDim.x + threadIdx.x];
            }
            dw[size_t(first + j) * of_filter + i] = __float2half_rn(sum[j]);
        }
    }
}

// Filters for the gradient of x in one product: filters (phase of the stride, c) × taps of dy × `row` of k. The window
// of phase 0 starts (top, left) from its pixel.
extern "C" __global__ void conv_turn_filters(const half *__restrict__ w, half *__restrict__ to, Sizes g, int top,
                                             int left, int rows, int columns, int row) {
    let_next_kernel_start();
    const int i = blockIdx.x * blockDim.x + threadIdx.x, k = i % row, tap = i / row;
    const int column = tap % columns, line = tap / columns, down = line % rows, filter = line / rows;
    const int c = filter % g.c, phase = filter / g.c;
    const int apart_h = g.stride_h == 1 ? g.dilation_h : 1, apart_w = g.stride_w == 1 ? g.dilation_w : 1;  // `merged`
    const int below = phase / g.stride_w + g.pad_h - (top + down * apart_h) * g.stride_h;
    const int beside = phase % g.stride_w + g.pad_w - (left + column * apart_w) * g.stride_w;
    const int r = below / g.dilation_h, s = beside / g.dilation_w;
    const bool whole = below >= 0 && beside >= 0 && r * g.dilation_h == below && s * g.dilation_w == beside;
    const int of_group = c - k / g.group_k * g.group_c;
    const bool inside = whole && r < g.r && s < g.s && k < g.k && unsigned(of_group) < unsigned(g.group_c);
    if (phase < g.stride_h * g.stride_w) {
        to[i] = inside ? w[(size_t(k * g.r + r) * g.s + s) * g.group_c + of_group] : half(0);
    }
    wait_for_kernel_before();  // a copy of dy
}

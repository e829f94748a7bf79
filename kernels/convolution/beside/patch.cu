// Few channels, such as a network's first layer has: y from patches of x in shared memory, by mma.sync, in one launch.
// Step 5 wants pixels of 16 bytes, and a copy that pads them reads and writes more than the layer does. Here a block
// brings the part of x that its pixels' windows cover, once, and each thread gathers what it multiplies from there: row
// by row of the window, as the filters lie. The depth of a row is padded with zeros to an even number where two
// neighbours can be read at once (PAIRS). A block stays for tile after tile, so that filters are brought once.
// Expected: the time of memory for x and y, 62 MB and 21 µs for 3 × 3 / 2 of three channels at 299², batch 32, where
// the copies alone move 85 MB. A warp reads 8 words of x in shared memory for 16 products of 16 × 8 × 16.
// Reached: 39 µs for it, 1.37 of the speed of cuDNN 9.19's fastest plan, where step 5 with its copies took 90;
// ResNet-50's 7 × 7 / 2 54 µs and 1.65 (98 before), VGG-16's first layer 92 µs and 2.21 (153 before), one channel of
// U-Net's 20 µs and 1.58 (H200, 2026-11-27, each in turns with cuDNN, in one process; before: on
// an H100). Six blocks on a multiprocessor in place of four, and wider stores to shared memory, took Inception's layer from
// 47 to 41 µs there.
//
// NT: eights of filters of a block. PAIRS: elements 2 i and 2 i + 1 of a window's row are neighbours in a patch, at
// even places. VEC: elements of a store; K is a multiple, and y starts at one.
#include "sizes.cuh"
#include "vectors.cuh"

constexpr int WARPS = 4, THREADS = 32 * WARPS, MT = 2, PIXELS = 16 * MT * WARPS, EIGHT = 8;

// A tile: `1 << shift` pixels wide; `rows` lines of `pitch` elements of x, from `chunks` vectors of 8. `line`: the depth
// of a row of a window, `steps`: 16 deep each, of a window.
struct Patch {
    int shift, tiles_down, tiles_across, tiles, rows, pitch, chunks, line, steps;
};

// Two of the depth: `pair` has their places in a patch, from a window's first element, and what __byte_perm takes.
template <bool PAIRS> __device__ __forceinline__ unsigned gather(const half *window, const int4 &pair) {
    if (PAIRS) {
        return __byte_perm(*reinterpret_cast<const unsigned *>(window + pair.x), 0, pair.z);
    }
    const unsigned low = __half_as_ushort(window[pair.x]), high = __half_as_ushort(window[pair.y]);
    return __byte_perm(low, high, pair.z);
}

// Element `at` of the row `down` of a window: its place in a patch.
__device__ __forceinline__ int place(int down, int at, const Sizes &g, const Patch &patch) {
    return down * g.dilation_h * patch.pitch + at / g.c * g.dilation_w * g.c + at % g.c;
}

template <int NT, bool PAIRS>
__device__ __forceinline__ void bring_filters(half *filters, int4 *pairs, const half *w, int first, const Sizes &g,
                                              const Patch &patch) {
    const int deep = patch.steps * 16, pitch = deep + EIGHT, in_row = g.s * g.c;
    for (int i = threadIdx.x; i < NT * 8 * pitch / EIGHT; i += THREADS) {
        reinterpret_cast<uint4 *>(filters)[i] = make_uint4(0, 0, 0, 0);
    }
    for (int i = threadIdx.x; i < deep / 2; i += THREADS) {
        const int down = i * 2 / patch.line, at = i * 2 - down * patch.line;
        const bool one = down < g.r && at < in_row;
        const int next = at + 1 == patch.line ? down + 1 : down, beside = next == down ? at + 1 : 0;
        const bool two = next < g.r && beside < in_row;
        const int selector = PAIRS ? (two ? 0x3210 : one ? 0x4410 : 0x4444) : two ? 0x5410 : one ? 0x2210 : 0x2222;
        pairs[i] = make_int4(one ? place(down, at, g, patch) : 0, two ? place(next, beside, g, patch) : 0, selector, 0);
    }
    __syncthreads();
    const int count = min(NT * 8, g.k - first) * g.depth;
    const half *from = w + size_t(first) * g.depth;
#pragma unroll 4
    for (int i = threadIdx.x * EIGHT; i < count; i += THREADS * EIGHT) {
        const int k = i / g.depth, of_filter = i - k * g.depth;
        int down = of_filter / in_row, at = of_filter - down * in_row;
        half *to = filters + k * pitch + down * patch.line + at;
        __align__(16) half found[EIGHT];
        if (i + EIGHT <= count) {
            *reinterpret_cast<uint4 *>(found) = *reinterpret_cast<const uint4 *>(from + i);
        } else {
#pragma unroll
            for (int j = 0; j < EIGHT; j++) {
                found[j] = i + j < count ? from[i + j] : half(0);
            }
        }
#pragma unroll
        for (int j = 0; j < EIGHT; j++) {
            if (i + j < count) {
                *to++ = found[j];
            }
            if (++at == in_row) {
                at = 0;
                to += patch.line - in_row;
                if (++down == g.r) {
                    down = 0;
                    to += pitch - g.r * patch.line;
                }
            }
        }
    }
}

// Elements from `first` on of `rows` lines of an image, zeros outside of it, at multiples of `pitch`. A thread reads 8
// at a multiple of 16 bytes, and writes them where the line begins with its first element: two at a time, after the one
// before where they begin at an odd place.
__device__ __forceinline__ void bring_patch(half *to, const half *x, int n, int top, int first, const Sizes &g,
                                            const Patch &patch) {
    const int in_row = g.w * g.c, all = patch.rows * patch.chunks;
#pragma unroll 2
    for (int start = 0; start < all; start += THREADS) {
        const int number = start + threadIdx.x, i = min(number, all - 1), row = i / patch.chunks, h = top + row;
        const int begin = (n * g.h + h) * in_row;  // of the line in x
        const int from = ((begin + first) & -EIGHT) + (i - row * patch.chunks) * EIGHT;
        const int of_row = from - begin, there = of_row - first, odd = there & 1;
        const bool inside = unsigned(h) < unsigned(g.h);
        __align__(16) unsigned short found[EIGHT];
        auto element = [&](int j) {
            const bool some = inside && unsigned(of_row + j) < unsigned(in_row);
            return some ? __half_as_ushort(x[from + j]) : (unsigned short)(0);
        };
        if (inside && of_row >= 0 && of_row + EIGHT <= in_row) {
            *reinterpret_cast<uint4 *>(found) = *reinterpret_cast<const uint4 *>(x + from);
        } else {
#pragma unroll
            for (int j = 0; j < EIGHT; j++) {
                found[j] = element(j);
            }
        }
        unsigned before = __shfl_up_sync(0xffffffff, found[EIGHT - 1], 1);
        if (threadIdx.x % 32 == 0 && odd) {
            before = element(-1);
        }
        if (number >= all) {
            continue;
        }
        half *const line = to + row * patch.pitch;
        if (there % EIGHT == 0 && there < patch.pitch) {
            *reinterpret_cast<uint4 *>(line + there) = *reinterpret_cast<const uint4 *>(found);
            continue;
        }
#pragma unroll
        for (int j = 0; j < EIGHT; j += 2) {
            const unsigned low = odd ? (j ? found[j - 1] : before) : found[j], high = odd ? found[j] : found[j + 1];
            if (unsigned(there - odd + j) < unsigned(patch.pitch)) {
                *reinterpret_cast<unsigned *>(line + there - odd + j) = low | high << 16;
            }
        }
    }
}

template <int NT, bool PAIRS, int VEC>
__global__ void __launch_bounds__(THREADS, NT <= 4 ? 6 : 5)
    conv_mma_patch(const half *__restrict__ x, const half *__restrict__ w, const float *__restrict__ bias,
                   half *__restrict__ y, Sizes g, Patch patch, float least) {
    extern __shared__ __align__(16) unsigned char memory[];
    constexpr int BN = NT * 8, LINE = BN + EIGHT;  // of results
    const int pitch = patch.steps * 16 + EIGHT, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    half *const filters = reinterpret_cast<half *>(memory);
    int4 *const pairs = reinterpret_cast<int4 *>(filters + BN * pitch);
    half *const results = reinterpret_cast<half *>(pairs + patch.steps * 8), *const own = results + warp * 16 * LINE;
    half *const pixels = results + WARPS * 16 * LINE;
    const int first = blockIdx.y * BN, tile_wide = 1 << patch.shift;
    bring_filters<NT, PAIRS>(filters, pairs, w, first, g, patch);

    const half *windows[MT][2];  // of the two pixels of each 16 that a thread multiplies
#pragma unroll
    for (int i = 0; i < MT * 2; i++) {
        const int m = (warp * MT + i / 2) * 16 + i % 2 * 8 + lane / 4;
        windows[i / 2][i % 2] =
            pixels + (m >> patch.shift) * g.stride_h * patch.pitch + (m & (tile_wide - 1)) * g.stride_w * g.c;
    }
    // What ldmatrix reads of two eights of filters: k and k + 8 of the first, then of the second.
    const unsigned lines = static_cast<unsigned>(__cvta_generic_to_shared(filters)) +
                           ((lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 8) * 2;

    for (int tile = blockIdx.x; tile < patch.tiles; tile += gridDim.x) {
        const int line = tile / patch.tiles_across, n = line / patch.tiles_down;
        const int p0 = (line - n * patch.tiles_down) * (PIXELS >> patch.shift);
        const int q0 = (tile - line * patch.tiles_across) << patch.shift;
        __syncthreads();  // all have read the patch before
        bring_patch(pixels, x, n, p0 * g.stride_h - g.pad_h, (q0 * g.stride_w - g.pad_w) * g.c, g, patch);
        __syncthreads();
        float sum[MT][NT][4] = {};
        for (int step = 0; step < patch.steps; step++) {
            const int4 low = pairs[step * 8 + lane % 4], high = pairs[step * 8 + 4 + lane % 4];
            unsigned a[MT][4];
#pragma unroll
            for (int i = 0; i < MT; i++) {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    a[i][j] = gather<PAIRS>(windows[i][j % 2], j < 2 ? low : high);
                }
            }
#pragma unroll
            for (int j = 0; j < NT; j += 2) {
                unsigned b[4];
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                             : "r"(lines + (j * 8 * pitch + step * 16) * 2)
                             : "memory");
#pragma unroll
                for (int i = 0; i < MT * 2; i++) {
                    float *const s = sum[i / 2][j + i % 2];
                    const unsigned *const left = a[i / 2];
                    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                        "{%8, %9}, {%0, %1, %2, %3};"
                        : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(b[i % 2 * 2]),
                          "r"(b[i % 2 * 2 + 1]));
                }
            }
        }
        const half2 bound = bound_of<half>(least);
#pragma unroll
        for (int i = 0; i < MT; i++) {
#pragma unroll
            for (int j = 0; j < NT; j++) {
                const int k = first + j * 8 + lane % 4 * 2;
                const float one = bias && k < g.k ? bias[k] : 0, two = bias && k + 1 < g.k ? bias[k + 1] : 0;
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const float rounded[2] = {sum[i][j][h * 2] + one, sum[i][j][h * 2 + 1] + two};
                    unsigned both;
                    pack(both, rounded);
                    *reinterpret_cast<unsigned *>(own + (h * 8 + lane / 4) * LINE + j * 8 + lane % 4 * 2) =
                        at_least(both, bound);
                }
            }
            __syncwarp();
#pragma unroll
            for (int at = lane; at < 16 * BN / VEC; at += 32) {
                const int row = at / (BN / VEC), k = at % (BN / VEC) * VEC, m = (warp * MT + i) * 16 + row;
                const int p = p0 + (m >> patch.shift), q = q0 + (m & (tile_wide - 1));
                if (p < g.p && q < g.q && first + k < g.k) {
                    using Vector = typename Packed<half, VEC>::type;
                    *reinterpret_cast<Vector *>(y + ((size_t(n) * g.p + p) * g.q + q) * g.k + first + k) =
                        *reinterpret_cast<const Vector *>(own + row * LINE + k);
                }
            }
            __syncwarp();
        }
    }
}

// w, K × R × S × C, turned round for the gradient of x: C × R × S × K, the last tap first.
extern "C" __global__ void __launch_bounds__(THREADS) conv_turned(const half *__restrict__ w, half *__restrict__ to,
                                                                  Sizes g) {
    const int i = blockIdx.x * THREADS + threadIdx.x, k = i % g.k, taps = g.r * g.s, tap = i / g.k % taps;
    const int c = i / g.k / taps;
    if (c < g.c) {
        to[i] = w[(k * taps + taps - 1 - tap) * g.c + c];
    }
}

// The first CBR of a network: three channels of float32 as an image comes, NCHW, to float16 or INT8 in NHWC, by mma.
// Vectors of 16 bytes want channels in eights. Here a block brings the rows of x that its pixels' windows cover, once,
// and writes them to shared memory as float16 with a fourth channel of zeros. Four taps of a window's row are then the 16
// of the depth that mma takes, and two neighbouring elements of an operand are two channels of a pixel: one load of four
// bytes. Lanes go along the pixels, so that their loads meet all banks once. Filters stay in registers, for tile after
// tile, in such an order that the eight results of a thread for a pixel are neighbours. No kernel converts or pads x.
// A number that is no number spoils one more column: that of the tap which fills up a four, times zero.
// Expected: the time of x and y, 70 MB for 7 × 7 / 2 at 224², batch 32: 23 µs at 3 TB/s.
// Reached: at batch 128 174 µs, to INT8 180. While threads exchanged their results by shuffles, batch 32 took 56 µs (59
// with tiles of four rows always, 70 with pixels asked for one by one); 3 × 3 / 2 to 32 filters 25 µs, with six blocks on
// a multiprocessor (two: 40). At 7 × 7 registers allow two, and what holds them up is not found (H200, 2026-11-26).
//
// HALVES: of 32 filters, one or two, of a block. UP: rows of y of a tile, of WIDE pixels each.
#include "cbr.cuh"

constexpr int THREADS = 128, WIDE = 112, CHANNELS = 3, AT_ONCE = 8;  // AT_ONCE: pixels that a thread asks for

// Eight neighbouring results of a pixel, as they are stored.
template <bool SWISH>
__device__ __forceinline__ void keep(half *y, const float (&v)[8], const Cbr &g) {
    const half2 least = least_of(g.relu), most = __float2half2_rn(g.most);
    uint4 result;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        reinterpret_cast<half2 *>(&result)[i] = activated<SWISH>(v[i * 2], v[i * 2 + 1], least, most);
    }
    *reinterpret_cast<uint4 *>(y) = result;
}

template <bool SWISH>
__device__ __forceinline__ void keep(signed char *y, const float (&v)[8], const Cbr &g) {
    const float per_step = g.per_step[0], least = g.relu && !SWISH ? 0 : -127;
    const float most = SWISH ? 127 : fminf(127, g.most * per_step);
    unsigned step[8];
#pragma unroll
    for (int i = 0; i < 8; i++) step[i] = in_steps((SWISH ? swish(v[i]) : v[i]) * per_step, least, most);
    *reinterpret_cast<uint2 *>(y) = make_uint2(low_bytes(step[0], step[1], step[2], step[3]),
                                               low_bytes(step[4], step[5], step[6], step[7]));
}

template <int R, int S, int STRIDE, int UP, int HALVES, bool SWISH, class Y>
__global__ void __launch_bounds__(THREADS, R *((S + 3) / 4) <= 4 ? 6 : 2)
    cbr_first(const float *__restrict__ x, const unsigned *__restrict__ filters, const float *__restrict__ bias,
              Y *__restrict__ y, Cbr g) {
    constexpr int FOURS = (S + 3) / 4, STEPS = R * FOURS, UNITS = WIDE / 16;  // of taps; of a tile's row, 16 pixels each
    constexpr int LINES = (UP - 1) * STRIDE + R, COLUMNS = (WIDE - 1) * STRIDE + FOURS * 4;
    __shared__ uint2 pixels[LINES * COLUMNS];  // four channels each
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, t = lane % 4;
    const int filter = blockIdx.y * HALVES * 32 + warp % HALVES * 32;

    unsigned b[STEPS][4][2];  // 16 of the depth × 32 filters
#pragma unroll
    for (int i = 0; i < STEPS * 8; i++) {
        const int step = i / 8, k = filter + lane / 8 * 8 + i / 2 % 4 * 2 + lane / 4 % 2;
        b[step][i / 2 % 4][i % 2] = filters[k * STEPS * 8 + step * 8 + i % 2 * 4 + t];
    }
    float more[4][2];  // their bias, with which sums begin
#pragma unroll
    for (int i = 0; i < 8; i++) more[i / 2][i % 2] = bias[filter + t * 8 + i];
    const int across = (g.q - 1) / WIDE + 1, down = (g.p - 1) / UP + 1, tiles = g.pixels / (g.p * g.q) * across * down;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int n = tile / (across * down), in_image = tile - n * across * down;
        const int p0 = in_image / across * UP, q0 = in_image % across * WIDE;
        const int top = p0 * STRIDE - g.pad_h, left = q0 * STRIDE - g.pad_w;
        const float *image = x + g.x.at(n, 0, 0, 0);
        __syncthreads();  // all have read the tile before
        for (int start = threadIdx.x; start < LINES * COLUMNS; start += THREADS * AT_ONCE) {
            float v[AT_ONCE][CHANNELS];  // all on their way before the first is waited for
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                const int i = start + k * THREADS, line = i / COLUMNS, h = top + line, w = left + i - line * COLUMNS;
                const bool inside = i < LINES * COLUMNS && unsigned(h) < unsigned(g.h) && unsigned(w) < unsigned(g.w);
                const float *from = image + (inside ? h * g.x.row + w * g.x.column : 0);
#pragma unroll
                for (int c = 0; c < CHANNELS; c++) {
                    const float found = from[c * g.x.channel];
                    v[k][c] = inside ? found : 0;
                }
            }
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                const half2 low = __floats2half2_rn(v[k][0], v[k][1]), high = __floats2half2_rn(v[k][2], 0);
                const uint2 both = {*reinterpret_cast<const unsigned *>(&low), *reinterpret_cast<const unsigned *>(&high)};
                if (start + k * THREADS < LINES * COLUMNS) pixels[start + k * THREADS] = both;
            }
        }
        __syncthreads();
        for (int pair = warp / HALVES; pair * 2 < UP * UNITS; pair += THREADS / 32 / HALVES) {
            const unsigned *words[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int unit = min(pair * 2 + i, UP * UNITS - 1);
                words[i] = reinterpret_cast<const unsigned *>(pixels) + t +
                           (unit / UNITS * COLUMNS + unit % UNITS * 16 + lane / 4) * STRIDE * 2;
            }
            float sum[2][4][4];
#pragma unroll
            for (int i = 0; i < 32; i++) sum[i / 16][i / 4 % 4][i % 4] = more[i / 4 % 4][i % 2];
#pragma unroll
            for (int step = 0; step < STEPS; step++) {
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    const unsigned *const from = words[i / 4] + (step / FOURS * COLUMNS + step % FOURS * 4) * 2;
                    const unsigned a[4] = {from[0], from[8 * STRIDE * 2], from[4], from[8 * STRIDE * 2 + 4]};
                    const int j = i % 4;
                    float(&s)[4] = sum[i / 4][j];
                    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                        "{%0, %1, %2, %3};"
                        : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[step][j][0]), "r"(b[step][j][1]));
                }
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int unit = pair * 2 + i / 2, low = i % 2;
                float v[8];
#pragma unroll
                for (int j = 0; j < 8; j++) v[j] = sum[i / 2][j / 2][low * 2 + j % 2];
                const int p = p0 + unit / UNITS, q = q0 + unit % UNITS * 16 + low * 8 + lane / 4;
                if (unit < UP * UNITS && p < g.p && q < g.q) {
                    keep<SWISH>(y + g.y[0].at(n, filter + t * 8, p, q), v, g);
                }
            }
        }
    }
}

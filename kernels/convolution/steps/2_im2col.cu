// 2. im2col, then a matrix product: filters × depth by depth × pixels. NCHW, float32, any parameters.
// Changed: conv_im2col writes the matrix whose column m holds the elements of x that meet a filter at pixel m of y,
// with zeros for those in the padding; conv_im2col_product is lab 04's kernel, which reads each element of both
// matrices once for a tile of 64 filters × 128 pixels, and not once for each product.
// Expected: the product alone near lab 04's step of the same kind. But the matrix has R × S / stride² times the
// elements of x (nine times for 3 × 3), which are written and read again: workspace 4 · C · R · S · N · P · Q bytes.
// That is how memory bought speed before cuDNN.
// Reached: 317 µs for conv2_x's 3 × 3, with 231 MB of workspace, 328 µs for conv4_x's: 23 and 23 TFLOP/s.
#include "forward_tile.cuh"

// columns[(c * R + r) * S + s][m] for all channels. Threads along x: pixels; blocks along y: channels.
extern "C" __global__ void conv_im2col(const float *__restrict__ x, float *__restrict__ columns, Sizes g) {
    const int m = blockIdx.x * blockDim.x + threadIdx.x, pixels = g.n * g.p * g.q;
    if (m >= pixels) {
        return;
    }
    const Pixel at = pixel_of(m, g);
    const int h0 = at.p * g.stride_h - g.pad_h, w0 = at.q * g.stride_w - g.pad_w;
    for (int c = blockIdx.y; c < g.c; c += gridDim.y) {
        const float *const image = x + (at.n * g.c + c) * g.h * g.w;
        float *to = columns + size_t(c) * g.r * g.s * pixels + m;
        for (int r = 0; r < g.r; r++) {
            for (int s = 0; s < g.s; s++, to += pixels) {
                const int h = h0 + r * g.dilation_h, w = w0 + s * g.dilation_w;
                const bool inside = h >= 0 && h < g.h && w >= 0 && w < g.w;
                *to = inside ? image[h * g.w + w] : 0;
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    conv_im2col_product(const float *__restrict__ columns, const float *__restrict__ w, const float *__restrict__ bias,
                        float *__restrict__ y, Sizes g, int relu) {
    const ForwardTile tile(g);
    const int pixels = g.n * g.p * g.q;
    const MatrixColumns of_group(columns + size_t(tile.group) * g.depth * pixels, tile.first_pixel + threadIdx.x,
                                 pixels, pixels);
    float sum[TM][TN] = {};
    multiply_tiles(filters(w, tile, g), of_group, 0, g.depth, sum);
    store(sum, bias, y, tile, g, relu);
}

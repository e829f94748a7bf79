// 3. Step 2 without the matrix in memory: its elements are taken from x when a tile needs them. NCHW, float32.
// Changed: only what a thread does for an element of the right tile. MatrixColumns read it from the workspace; Windows
// find the place in x that it was copied from. A thread keeps to one pixel and walks through the taps (c, r, s).
// Expected: no workspace, and neither its writes nor its reads: x comes from global memory about once and from the
// caches R × S times. In exchange some integer instructions for each element, which 64 filters share.
// Reached: 244 µs for conv2_x's 3 × 3, 338 µs for conv4_x's: 30 and 22 TFLOP/s. cuDNN's fastest plan without tensor
// cores took 237 and 245 µs. With 256 filters each element is gathered four times, and the 196 tiles of conv4_x are
// hardly more than an H100 has multiprocessors: there it gains nothing on step 2.
#include "forward_tile.cuh"

// The columns of step 2's matrix: at pixel m of y and depth k the element of x that w's element k meets there.
struct Windows {
    const float *channels;  // of the group, in the pixel's image
    int h0, w0;             // where the window begins
    bool inside;            // the pixel is one
    Tap tap;
    const Sizes &g;

    __device__ __forceinline__ Windows(const float *x, int group, int m, const Sizes &g) : tap{0, 0, 0}, g(g) {
        const Pixel at = pixel_of(m, g);
        channels = x + (at.n * g.c + group * g.group_c) * g.h * g.w;
        h0 = at.p * g.stride_h - g.pad_h;
        w0 = at.q * g.stride_w - g.pad_w;
        inside = m < g.n * g.p * g.q;
    }

    __device__ __forceinline__ float next(bool wanted) {
        const int h = h0 + tap.r * g.dilation_h, w = w0 + tap.s * g.dilation_w;
        wanted = wanted & inside & (unsigned(h) < unsigned(g.h)) & (unsigned(w) < unsigned(g.w));  // no branches
        const float value = wanted ? channels[(tap.c * g.h + h) * g.w + w] : 0;
        advance(tap, g);
        return value;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    conv_implicit_gemm(const float *__restrict__ x, const float *__restrict__ w, const float *__restrict__ bias,
                       float *__restrict__ y, Sizes g, int relu) {
    const ForwardTile tile(g);
    const Windows windows(x, tile.group, tile.first_pixel + threadIdx.x, g);
    float sum[TM][TN] = {};
    multiply_tiles(filters(w, tile, g), windows, 0, g.depth, sum);
    store(sum, bias, y, tile, g, relu);
}

// A CBR whose filters each see one group of the channels only; with a channel per group it is called depthwise. A thread
// has a result, and reads its window: a filter has so few weights that there is next to nothing to share between
// threads. Lanes go along what lies side by side in y.
// Expected: depthwise, the time of reading x and writing y once.
// Right on an H200 (2026-11-26); not timed there.
#include "cbr.cuh"

template <class X, bool ALONG_FILTERS>
__global__ void cbr_grouped(const X *__restrict__ x, const X *__restrict__ filters, const float *__restrict__ scale,
                            const float *__restrict__ bias, const X *residual, float residual_scale, void *y0, void *y1,
                            void *y2, void *y3, Cbr g, int filters_of_group) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int k = ALONG_FILTERS ? i % g.k : i / g.pixels, pixel = ALONG_FILTERS ? i / g.k : i % g.pixels;
    if (k >= g.k || pixel >= g.pixels) return;
    const Epilogue<X> epilogue{scale, bias, residual, residual_scale, y0, y1, y2, y3};
    const Window window = window_of(pixel, g);
    const int first = k / filters_of_group * g.c;
    const X *const filter = filters + size_t(k) * g.depth;
    float sum = 0;
    for (int r = 0; r < g.r; r++) {
        const int h = window.h + r * g.dilation_h;
        if (unsigned(h) >= unsigned(g.h)) continue;
        for (int s = 0; s < g.s; s++) {
            const int w = window.w + s * g.dilation_w;
            if (unsigned(w) >= unsigned(g.w)) continue;
            for (int c = 0; c < g.c; c++) {
                sum += to_float(x[g.x.at(window.n, first + c, h, w)]) * to_float(filter[(r * g.s + s) * g.c + c]);
            }
        }
    }
    epilogue.write(sum, epilogue.column(k, g), k, place_of(pixel, g), g);
}

// A CBR on ordinary cores: float32 sums of float32, float16 or INT8 elements, any layout, any number of channels. The
// tactic that runs where no faster one can. What it does is in sliced_tiles.cuh, its epilogue in cbr.cuh.
// Expected: one launch where the layers alone are three or four, and y written once where it was written three times
// and read twice.
// Measured (H100 80GB HBM3, 2026-11-22, ncu): 48 filters of 1 × 1 on 16 channels of 8 × 8, batch 128: 8.3 µs.
#include "sliced_tiles.cuh"

template <class X, int BM, int BN, int TM, int TN, int SLICES, bool ALONG_DEPTH, bool ALONG_FILTERS>
__global__ void __launch_bounds__(BM / TM * (BN / TN) * SLICES)
    cbr_f32(const X *__restrict__ x, const X *__restrict__ filters, const float *__restrict__ scale,
            const float *__restrict__ bias, const X *residual, float residual_scale, void *y0, void *y1, void *y2,
            void *y3, Cbr g) {
    const Epilogue<X> epilogue{scale, bias, residual, residual_scale, y0, y1, y2, y3};
    sliced_product<Tiles<BM, BN, TM, TN, SLICES, ALONG_DEPTH>, float, ALONG_FILTERS>(x, filters, g, epilogue);
}

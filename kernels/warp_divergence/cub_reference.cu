// CUB's own histogram and selection, as the benchmark compares them; compiled by nvcc (cub_reference.py).
// Each function takes CUB's two calls: with temp = nullptr it writes the size of the workspace to *bytes.

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_select.cuh>

template <typename T>
struct Greater {
    T threshold;
    __device__ bool operator()(const T &x) const { return x > threshold; }
};

extern "C" int cub_version() { return CUB_VERSION; }

extern "C" int cub_histogram(void *temp, size_t *bytes, const unsigned char *x, unsigned *bins, int n, cudaStream_t s) {
    return cub::DeviceHistogram::HistogramEven(temp, *bytes, x, bins, 257, 0, 256, n, s);
}

extern "C" int cub_select_float(void *temp, size_t *bytes, const float *x, float threshold, float *out,
                                unsigned long long *count, int n, cudaStream_t s) {
    return cub::DeviceSelect::If(temp, *bytes, x, out, count, n, Greater<float>{threshold}, s);
}

extern "C" int cub_select_int(void *temp, size_t *bytes, const int *x, int threshold, int *out,
                              unsigned long long *count, int n, cudaStream_t s) {
    return cub::DeviceSelect::If(temp, *bytes, x, out, count, n, Greater<int>{threshold}, s);
}

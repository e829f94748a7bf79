__global__ void rms_norm(const float* x, float* y, int features, int places) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= places) return;
    size_t first = size_t(blockIdx.y) * features * places + i;
    float sum = 0;
    for (int f = 0; f < features; f++) {
        float v = x[first + size_t(f) * places];
        sum += v * v;
    }
    float rms = sqrtf(sum / features + 1e-5f);
    for (int f = 0; f < features; f++) y[first + size_t(f) * places] = x[first + size_t(f) * places] / rms;
}

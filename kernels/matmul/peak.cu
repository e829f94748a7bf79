// What the FP32 cores can do at most: fused multiply-adds on registers alone, 16 independent chains per thread.
// 2 × 16 × STEPS operations per thread and round.
constexpr int CHAINS = 16, STEPS = 16;

extern "C" __global__ void __launch_bounds__(256) fma_peak(float *out, float factor, float added, int rounds) {
    float value[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; i++) {
        value[i] = threadIdx.x + i;
    }
    for (int round = 0; round < rounds; round++) {
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
#pragma unroll
            for (int i = 0; i < CHAINS; i++) {
                value[i] = value[i] * factor + added;
            }
        }
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < CHAINS; i++) {
        sum += value[i];
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

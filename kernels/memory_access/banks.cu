// Bank conflicts: shared memory has 32 banks of 4 bytes; word w lies in bank w % 32. A load whose lanes need different
// words of one bank takes a pass (a wavefront) for each of them.

// Lane l of each warp loads the words l * stride + 0 .. 7, `repeats` times. The lanes' banks are `stride` apart, so the
// load takes as many wavefronts as stride and 32 have common factors: gcd(stride, 32). Stride 0: all lanes one word.
// volatile: each load is made, though nothing changes the words. out: a sum per thread.
// Measured: NVIDIA H100 80GB HBM3, 2026-11-21: 136 µs with stride 1, 268 µs with 2, 4242 µs with 32, 136 µs with 33.
extern "C" __global__ void read_banks(float *out, int stride, int repeats) {
    constexpr int WORDS = 33 * 31 + 8;
    __shared__ float words[WORDS];
    for (int k = threadIdx.x; k < WORDS; k += blockDim.x) {
        words[k] = k;
    }
    __syncthreads();
    const volatile float *mine = words + threadIdx.x % 32 * stride;
    float sum = 0;
    for (int r = 0; r < repeats; r++) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            sum += mine[k];
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

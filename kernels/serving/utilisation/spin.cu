// z = z * z + c, over and over: threads that compute and touch no memory until they end.
//
// Launched with one thread, it is the cheapest way to a "GPU utilisation" of 100 %: one lane of one warp of one SM
// works, and NVML sees a kernel running. Launched with as many threads as the card holds, it fills the FP32 cores, and
// NVML says the same 100 %. The map is chaotic for c near -2 and stays within -2 and 2, so no value repeats and the
// compiler can leave nothing out; each step needs the last one's result.
//
// Reached: one thread, NVML 99.8 %, SM activity 0.76 %; a full card, NVML 99.5 %, SM activity 98.8 %, FP32 pipe 78.8 %;
// NVIDIA H100 80GB HBM3, 2026-11-23 (recordings.json, "utilisation").

extern "C" __global__ void spin(const float *c, unsigned int rounds, float *out, size_t n) {
    const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float step = c[i];
    float z = 0;
    for (unsigned int k = 0; k < rounds; ++k) z = fmaf(z, z, step);
    out[i] = z;
}

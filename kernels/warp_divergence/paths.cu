// K ways through a kernel, all of the same length: which threads share a warp decides what they cost.
//
// Thread i takes way (i >> shift) % K: with shift = 0 the lanes of a warp go different ways, with shift = 5 a warp goes
// one way and its neighbours others. The machine code is the same.
// Expected: by warp, the time of one way whatever K is; by lane, K times that, with a warp efficiency of 1 / K.
// Reached (2^22 threads, 256 steps, NVIDIA H100 80GB HBM3, 2026-11-21), K = 1, 2, 4, ... 32:
// by lane 64.86, 124.1, 241.9, 477, 947.4, 1888 µs,
// by warp 64.64, 65.73, 66.08, 66.21, 66.56, 66.94 µs;
// warp efficiency by lane 1, 0.513, 0.261, 0.132, 0.0664, 0.0334, by warp 1.

// One way: `steps` times x = x / 2 + b, with a constant of its own.
template <int WAY>
__device__ float way(float x, int steps) {
#pragma unroll 4
    for (int k = 0; k < steps; k++) x = 0.5f * x + (1 + WAY);
    return x;
}

// Ways FIRST to FIRST + COUNT - 1, found by halving.
template <int FIRST, int COUNT>
__device__ float choose(int wanted, float x, int steps) {
    if constexpr (COUNT == 1) {
        return way<FIRST>(x, steps);
    } else if (wanted < FIRST + COUNT / 2) {
        return choose<FIRST, COUNT / 2>(wanted, x, steps);
    } else {
        return choose<FIRST + COUNT / 2, COUNT / 2>(wanted, x, steps);
    }
}

template <int K>
__global__ void paths(const float *x, float *out, int n, int steps, int shift) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = choose<0, K>((i >> shift) % K, x[i], steps);
    }
}

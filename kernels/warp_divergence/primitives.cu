// The lanes of a warp exchange registers: sum and scan of each 32 neighbouring elements, without memory or barrier.
//
// Every lane of the mask must reach the same call, so the lanes past the end of the data take part, with 0.
// Blocks are whole warps (`primitives.py` refuses others).

constexpr unsigned ALL = 0xffffffff;

// 1. Sum, in five steps: each lane adds what the lane k further has, for k = 16, 8, 4, 2, 1. Lane 0 has the sum then;
// the others add values from outside the warp's half and are not used.
extern "C" __global__ void warp_sums(const int *x, int *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = i < n ? x[i] : 0;
    for (int k = 16; k > 0; k /= 2) sum += __shfl_down_sync(ALL, sum, k);
    if (threadIdx.x % 32 == 0 && i < n) out[i / 32] = sum;
}

// 2. Inclusive scan: after the step with k each lane has the sum of its own and of the 2 k - 1 lanes before it.
extern "C" __global__ void warp_scans(const int *x, int *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    int sum = i < n ? x[i] : 0;
    for (int k = 1; k < 32; k *= 2) {
        const int before = __shfl_up_sync(ALL, sum, k);
        if (lane >= k) sum += before;
    }
    if (i < n) out[i] = sum;
}

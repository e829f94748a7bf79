// Branch against predication: what the compiler makes of a condition depends on how much stands under it.
//
// condition<STEPS> does STEPS multiplications and additions where x[i] is positive. For a few of them the compiler
// issues the instructions for all lanes, each under a predicate (@P0) that switches it off for the others: no branch,
// no divergence, and the time of both ways for all. For more it branches around them, and a warp without positive x
// skips them. The machine code of each is in machine_code.json.

template <int STEPS>
__global__ void condition(const float *x, float *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float y = x[i];
        if (y > 0) {
#pragma unroll
            for (int k = 1; k <= STEPS; k++) y = y * 0.5f + float(k);
        }
        out[i] = y;
    }
}

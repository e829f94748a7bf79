// Patterns of atomic operations on global and shared memory.

__global__ void add_distinct(int *out, const int *in) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&out[i], in[i]);
}

__global__ void add_same(int *out, const int *in) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(out, in[i]);
}

__global__ void add_same_float(float *out, const float *in) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(out, in[i]);
}

// The place in the output comes from the atomic's result: a queue.
__global__ void append(int *count, int *out, const int *in) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (in[i] % 3 == 0) out[atomicAdd(count, 1)] = in[i];
}

// The same with one atomic per warp.
__global__ void append_by_warp(int *count, int *out, const int *in) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const bool chosen = in[i] % 3 == 0;
    const unsigned lanes = __ballot_sync(0xffffffff, chosen);
    int place = 0;
    if (threadIdx.x % 32 == 0) place = atomicAdd(count, __popc(lanes));
    place = __shfl_sync(0xffffffff, place, 0);
    if (chosen) out[place + __popc(lanes & ((1u << threadIdx.x % 32) - 1))] = in[i];
}

__global__ void histogram_global(unsigned *bins, const unsigned char *in, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[in[i]], 1u);
}

__global__ void histogram_shared(unsigned *bins, const unsigned char *in, int n) {
    __shared__ unsigned own[256];
    for (int k = threadIdx.x; k < 256; k += blockDim.x) own[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[in[i]], 1u);
    __syncthreads();
    for (int k = threadIdx.x; k < 256; k += blockDim.x) atomicAdd(&bins[k], own[k]);
}

// A maximum of floats by compare-and-swap.
__global__ void cas_maximum(int *out, const float *in) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float x = in[i];
    int *place = &out[i % 8];
    int old = *place;
    while (__int_as_float(old) < x) {
        const int assumed = old;
        old = atomicCAS(place, assumed, __float_as_int(x));
        if (old == assumed) break;
    }
}

__global__ void exchange_and_extremes(int *a, int *b, int *c, const int *in) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicMin(&a[i % 16], in[i]);
    atomicMax(&b[i * 8], in[i]);
    c[i] = atomicExch(&c[i + 4096], in[i]);
}

__global__ void shared_add(int *out, const int *index) {
    __shared__ int s[1024];
    for (int k = threadIdx.x; k < 1024; k += blockDim.x) s[k] = 0;
    __syncthreads();
    atomicAdd(&s[index[threadIdx.x]], threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];
}

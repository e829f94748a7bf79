// Ways into and out of shared memory beside ld and st: ldmatrix, and copies from global memory that pass no register.

// Four 8 × 8 tiles of 16-bit elements; rows of 16 bytes lie `pitch` bytes apart (a multiple of 16).
__global__ void load_matrix(uint4 *out, int pitch) {
    __shared__ __align__(16) unsigned words[2560];
    for (int k = threadIdx.x; k < 2560; k += blockDim.x) words[k] = k;
    __syncthreads();
    const unsigned row = (unsigned)__cvta_generic_to_shared(words) + threadIdx.x % 32 * pitch;
    uint4 r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "r"(row) : "memory");
    out[threadIdx.x] = r;
}

// One T (4, 8 or 16 bytes) a thread by cp.async, to elements `stride` apart.
template <typename T> __global__ void copy_async(const T *in, T *out, int stride) {
    __shared__ T s[512];
    const unsigned place = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x * stride]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                 :: "r"(place), "l"(in + blockIdx.x * blockDim.x + threadIdx.x), "n"(sizeof(T)) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = s[threadIdx.x * stride];
}

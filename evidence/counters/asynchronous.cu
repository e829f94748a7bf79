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

// One T per thread by cp.async, from elements `from` apart to elements `to` apart (0: all the same one).
template <typename T> __global__ void copy_async_apart(const T *in, T *out, int from, int to) {
    __shared__ T s[1024];
    const unsigned place = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x * to]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                 :: "r"(place), "l"(in + threadIdx.x * from), "n"(sizeof(T)) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x * to];
}

// A tile of 64 rows of `columns` × 16 bytes by cp.async past the L1 cache, from rows `pitch` apart in global memory to
// rows `to` apart in shared memory, both in 16 bytes. SWIZZLED: column c of row r goes to column c ^ (r & 3).
template <bool SWIZZLED> __global__ void copy_tile(const float4 *in, float4 *out, int columns, int pitch, int to) {
    __shared__ float4 s[64 * 9];
    for (int k = threadIdx.x; k < 64 * columns; k += blockDim.x) {
        const int row = k / columns, column = k % columns;
        const unsigned place =
            (unsigned)__cvta_generic_to_shared(&s[row * to + (SWIZZLED ? column ^ (row & 3) : column)]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                     :: "r"(place), "l"(in + row * pitch + column) : "memory");
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int k = threadIdx.x; k < 64 * columns; k += blockDim.x) {
        const int row = k / columns, column = k % columns;
        out[k] = s[row * to + (SWIZZLED ? column ^ (row & 3) : column)];
    }
}

// Every other thread copies, and of those some only zeros.
__global__ void copy_async_some(const float *in, float *out, int zeros) {
    __shared__ float s[512];
    s[threadIdx.x * 2] = -1;
    const unsigned place = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x * 2]);
    const int bytes = threadIdx.x % 4 < zeros ? 0 : 4;
    if (threadIdx.x & 1) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                     :: "r"(place), "l"(in + threadIdx.x), "r"(bytes) : "memory");
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[threadIdx.x] = s[threadIdx.x * 2];
}

// One T (4, 8 or 16 bytes) per thread by cp.async, to elements `stride` apart.
template <typename T> __global__ void copy_async(const T *in, T *out, int stride) {
    __shared__ T s[512];
    const unsigned place = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x * stride]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                 :: "r"(place), "l"(in + blockIdx.x * blockDim.x + threadIdx.x), "n"(sizeof(T)) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = s[threadIdx.x * stride];
}

// Patterns of shared memory: what a warp's 32 addresses cost in wavefronts.

const int BYTES = 16384;  // of shared memory in the first two kernels

// One load of T by each thread, at an index from a table; threads with a negative index do not load.
template <typename T> __global__ void shared_load(const int *index, T *out) {
    __shared__ __align__(16) unsigned words[BYTES / 4];
    for (int k = threadIdx.x; k < BYTES / 4; k += blockDim.x) words[k] = k;
    __syncthreads();
    const int i = index[threadIdx.x];
    if (i >= 0) {
        out[threadIdx.x] = reinterpret_cast<const T *>(words)[i];
    }
}

// One store of T by each thread, at an index from a table; threads with a negative index do not store.
template <typename T> __global__ void shared_store(const int *index, const T *in, unsigned *out) {
    __shared__ __align__(16) unsigned words[BYTES / 4];
    for (int k = threadIdx.x; k < BYTES / 4; k += blockDim.x) words[k] = k;
    __syncthreads();
    const int i = index[threadIdx.x];
    if (i >= 0) {
        reinterpret_cast<T *>(words)[i] = in[threadIdx.x];
    }
    __syncthreads();
    out[threadIdx.x] = words[threadIdx.x];
}

// A tile of 32 × 32 by a block of 32 × 8: rows are written, columns are read.
__global__ void transpose_tile(const float *in, float *out, int n) {
    __shared__ float tile[32][32];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * n + x];
    __syncthreads();
    const int u = blockIdx.y * 32 + threadIdx.x, v = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) out[(v + k) * n + u] = tile[threadIdx.x][threadIdx.y + k];
}

__global__ void transpose_padded(const float *in, float *out, int n) {
    __shared__ float tile[32][33];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * n + x];
    __syncthreads();
    const int u = blockIdx.y * 32 + threadIdx.x, v = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) out[(v + k) * n + u] = tile[threadIdx.x][threadIdx.y + k];
}

__global__ void transpose_swizzled(const float *in, float *out, int n) {
    __shared__ float tile[32][32];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) {
        const int row = threadIdx.y + k;
        tile[row][threadIdx.x ^ row] = in[(y + k) * n + x];
    }
    __syncthreads();
    const int u = blockIdx.y * 32 + threadIdx.x, v = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) {
        const int column = threadIdx.y + k;
        out[(v + k) * n + u] = tile[threadIdx.x][column ^ threadIdx.x];
    }
}

template <int TILE> __global__ void matmul_tiled(const float *a, const float *b, float *c, int n) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    const int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k += TILE) {
        const int column = k + threadIdx.x, row = k + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] = y < n && column < n ? a[y * n + column] : 0.0f;
        tile_b[threadIdx.y][threadIdx.x] = row < n && x < n ? b[row * n + x] : 0.0f;
        __syncthreads();
        for (int j = 0; j < TILE; j++) sum += tile_a[threadIdx.y][j] * tile_b[j][threadIdx.x];
        __syncthreads();
    }
    if (x < n && y < n) {
        c[y * n + x] = sum;
    }
}

// Sums of a block: threads further and further apart.
__global__ void reduce_interleaved(const float *in, float *out) {
    __shared__ float s[256];
    s[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        if (threadIdx.x % (2 * step) == 0) s[threadIdx.x] += s[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

// The same additions by neighbouring threads, whose words are then further and further apart.
__global__ void reduce_strided(const float *in, float *out) {
    __shared__ float s[256];
    s[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        const int i = 2 * step * threadIdx.x;
        if (i < blockDim.x) s[i] += s[i + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

__global__ void reduce_sequential(const float *in, float *out) {
    __shared__ float s[256];
    s[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) s[threadIdx.x] += s[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

__global__ void reduce_shuffle(const float *in, float *out) {
    __shared__ float s[32];
    float sum = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? s[threadIdx.x] : 0.0f;
        for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
        if (threadIdx.x == 0) out[blockIdx.x] = sum;
    }
}

// Prefix sums of a block, after Hillis and Steele.
__global__ void scan(const float *in, float *out) {
    __shared__ float s[2][256];
    int from = 0;
    s[0][threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        float sum = s[from][threadIdx.x];
        if (threadIdx.x >= step) sum += s[from][threadIdx.x - step];
        s[1 - from][threadIdx.x] = sum;
        from = 1 - from;
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = s[from][threadIdx.x];
}

// Prefix sums of two elements per thread, up and down a tree (Blelloch): strides of powers of two, with conflicts.
__global__ void scan_tree(const float *in, float *out) {
    __shared__ float s[512];
    const int t = threadIdx.x, n = 512;
    s[t] = in[blockIdx.x * n + t];
    s[t + 256] = in[blockIdx.x * n + t + 256];
    int step = 1;
    for (int active = n / 2; active > 0; active /= 2) {
        __syncthreads();
        if (t < active) s[step * (2 * t + 2) - 1] += s[step * (2 * t + 1) - 1];
        step *= 2;
    }
    if (t == 0) s[n - 1] = 0;
    for (int active = 1; active < n; active *= 2) {
        step /= 2;
        __syncthreads();
        if (t < active) {
            const float left = s[step * (2 * t + 1) - 1];
            s[step * (2 * t + 1) - 1] = s[step * (2 * t + 2) - 1];
            s[step * (2 * t + 2) - 1] += left;
        }
    }
    __syncthreads();
    out[blockIdx.x * n + t] = s[t];
    out[blockIdx.x * n + t + 256] = s[t + 256];
}

// Arrays, lists, tables and graphs.

// Sorts 1024 numbers per block in shared memory by a bitonic network, 512 threads.
extern "C" __global__ void bitonic_sort(const unsigned *x, unsigned *out)
{
    __shared__ unsigned s[1024];
    const size_t first = (size_t)blockIdx.x * 1024;
    s[threadIdx.x] = x[first + threadIdx.x];
    s[threadIdx.x + 512] = x[first + threadIdx.x + 512];
    for (int size = 2; size <= 1024; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            const int at = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
            const bool up = (at & size) == 0;
            const unsigned a = s[at], b = s[at + stride];
            if ((a > b) == up) s[at] = b, s[at + stride] = a;
        }
    }
    __syncthreads();
    out[first + threadIdx.x] = s[threadIdx.x];
    out[first + threadIdx.x + 512] = s[threadIdx.x + 512];
}

// Counts of one digit of 4 bits for each tile of 4096 keys, as the first pass of a radix sort.
extern "C" __global__ void radix_counts(const unsigned *key, unsigned *count, int tiles, int shift)
{
    __shared__ unsigned bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    for (int k = 0; k < 16; k++) {
        atomicAdd(&bins[key[(size_t)blockIdx.x * 4096 + k * 256 + threadIdx.x] >> shift & 15], 1);
    }
    __syncthreads();
    if (threadIdx.x < 16) count[threadIdx.x * tiles + blockIdx.x] = bins[threadIdx.x];
}

// Merges two sorted arrays: each thread finds where its eight outputs begin on the merge path.
extern "C" __global__ void merge_path(const int *a, const int *b, int *out, int na, int nb)
{
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
    if (first >= na + nb) return;
    int low = max(0, first - nb), high = min(first, na);
    while (low < high) {
        const int middle = (low + high) / 2;
        if (a[middle] <= b[first - 1 - middle]) low = middle + 1;
        else high = middle;
    }
    int i = low, j = first - low;
    for (int k = 0; k < 8 && first + k < na + nb; k++) {
        if (j >= nb || (i < na && a[i] <= b[j])) out[first + k] = a[i++];
        else out[first + k] = b[j++];
    }
}

// Puts keys with their values into a table with linear probing; `mask` is its size - 1, 0 an empty place.
extern "C" __global__ void hash_insert(const unsigned *key, const int *value, unsigned *keys, int *values, int n,
                                       unsigned mask)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned mine = key[i];
    unsigned slot = mine * 2654435761u >> 7 & mask;
    while (true) {
        const unsigned before = atomicCAS(&keys[slot], 0u, mine);
        if (before == 0u || before == mine) break;
        slot = (slot + 1) & mask;
    }
    values[slot] = value[i];
}

// A level of a breadth-first search: vertices of the level mark neighbours that nobody has reached.
extern "C" __global__ void bfs_level(const int *start, const int *edge, const int *level, int *next, int vertices, int now)
{
    const int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= vertices || level[v] != now) return;
    for (int i = start[v]; i < start[v + 1]; i++) {
        if (level[edge[i]] < 0) next[edge[i]] = now + 1;
    }
}

// Where a pattern of `length` bytes begins in a text, by trying each place.
extern "C" __global__ void string_search(const unsigned char *text, const unsigned char *pattern, unsigned char *found,
                                         int n, int length)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    bool same = i + length <= n;
    for (int k = 0; same && k < length; k++) same = text[i + k] == pattern[k];
    found[i] = same;
}

// From channels first to channels last, a thread per element of the result.
extern "C" __global__ void permute_nchw_nhwc(const float *x, float *out, int images, int channels, int places)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= images * channels * places) return;
    const int channel = i % channels, place = i / channels % places, image = i / channels / places;
    out[i] = x[(image * channels + channel) * places + place];
}

extern "C" __global__ void gather(const float *x, const int *index, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[index[i]];
}

// Each thread walks `steps` links of a list.
extern "C" __global__ void list_walk(const int *next, const int *first, int *last, int n, int steps)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int at = first[i];
    for (int k = 0; k < steps; k++) at = next[at];
    last[i] = at;
}

// A sum in one launch: the last block to arrive adds what the blocks have left.
extern "C" __global__ void last_block_sum(const float *x, float *part, unsigned *arrived, float *out, int n)
{
    __shared__ float warps[8];
    __shared__ bool last;
    float sum = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0.0f;
        for (int k = 0; k < 8; k++) sum += warps[k];
        part[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    sum = 0.0f;
    for (int i = threadIdx.x; i < gridDim.x; i += 256) sum += part[i];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0.0f;
        for (int k = 0; k < 8; k++) sum += warps[k];
        *out = sum;
    }
}

// Tables, strings, signals and integers.

// Alignment of two strings by Needleman and Wunsch: a diagonal of tiles of 32 x 32, a block of 32 threads per tile.
extern "C" __global__ void align_tiles(const int *score, const int *reference, int *out, int side, int penalty)
{
    __shared__ int table[33][33];
    const int tiles = gridDim.x, tx = threadIdx.x;
    const int left = blockIdx.x * 32, top = (tiles - 1 - blockIdx.x) * 32, row = side + 1;
    for (int i = 0; i < 33; i++) {
        if (tx == 0) table[i][0] = score[(top + i) * row + left];
    }
    table[0][tx + 1] = score[top * row + left + tx + 1];
    __syncthreads();
    for (int d = 0; d < 63; d++) {
        const int y = d - tx;
        if (y >= 0 && y < 32) {
            const int match = table[y][tx] + reference[(top + y) * side + left + tx];
            table[y + 1][tx + 1] = max(match, max(table[y][tx + 1], table[y + 1][tx]) - penalty);
        }
        __syncthreads();
    }
    for (int y = 0; y < 32; y++) out[(top + y) * side + left + tx] = table[y + 1][tx + 1];
}

// Search in a tree whose nodes hold 32 keys (Rodinia's b+tree): a warp per query, all lanes compare.
extern "C" __global__ void tree_search(const int *keys, const int *query, int *place, int queries, int levels)
{
    const int q = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (q >= queries) return;
    const int wanted = query[q];
    int node = 0, first = 0, count = 1;
    for (int level = 0; level < levels; level++) {
        const unsigned below = __ballot_sync(0xffffffff, keys[(size_t)(first + node) * 32 + lane] <= wanted);
        node = node * 32 + max(__popc(below) - 1, 0);
        first += count;
        count *= 32;
    }
    if (lane == 0) place[q] = node;
}

// Rows of a Haar wavelet transform: all levels of 1024 elements in shared memory.
extern "C" __global__ void haar_rows(const float *x, float *out)
{
    __shared__ float s[1024], half[512];
    const int t = threadIdx.x;
    const size_t first = (size_t)blockIdx.x * 1024;
    s[t] = x[first + t];
    s[t + 512] = x[first + t + 512];
    for (int n = 512; n >= 1; n /= 2) {
        __syncthreads();
        if (t < n) {
            const float a = s[2 * t], b = s[2 * t + 1];
            half[t] = (a + b) * 0.70710678f;
            out[first + n + t] = (a - b) * 0.70710678f;
        }
        __syncthreads();
        if (t < n) s[t] = half[t];
    }
    if (t == 0) out[first] = s[0];
}

// Fourier transforms of 512 complex numbers per block, radix 2, in shared memory, 256 threads.
extern "C" __global__ void fourier_512(const float2 *x, float2 *out)
{
    __shared__ float2 s[512];
    const size_t first = (size_t)blockIdx.x * 512;
    for (int i = threadIdx.x; i < 512; i += 256) s[__brev(i) >> 23] = x[first + i];
    for (int half = 1; half < 512; half *= 2) {
        __syncthreads();
        const int k = threadIdx.x & (half - 1), a = 2 * (threadIdx.x - k) + k, b = a + half;
        float sine, cosine;
        __sincosf(-3.14159265f * k / half, &sine, &cosine);
        const float2 u = s[a], v = s[b];
        const float2 t = make_float2(v.x * cosine - v.y * sine, v.x * sine + v.y * cosine);
        s[a] = make_float2(u.x + t.x, u.y + t.y);
        s[b] = make_float2(u.x - t.x, u.y - t.y);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 512; i += 256) out[first + i] = s[i];
}

// Motion of 16 x 16 pixels: a block per macroblock, a thread per offset of a search of 16 x 16.
extern "C" __global__ void motion_search(const unsigned char *now, const unsigned char *before, int *best, int width)
{
    __shared__ unsigned char own[16][16], area[32][32];
    __shared__ int least;
    const int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 16, y = blockIdx.y * 16, row = width + 16;
    own[ty][tx] = now[(y + ty) * width + x + tx];
    for (int k = 0; k < 4; k++) {
        const int dy = ty + k / 2 * 16, dx = tx + k % 2 * 16;
        area[dy][dx] = before[(y + dy) * row + x + dx];
    }
    if (tx == 0 && ty == 0) least = 0x7fffffff;
    __syncthreads();
    int sum = 0;
    for (int j = 0; j < 16; j++)
        for (int i = 0; i < 16; i++) sum += abs((int)own[j][i] - (int)area[ty + j][tx + i]);
    atomicMin(&least, sum << 8 | ty << 4 | tx);
    __syncthreads();
    if (tx == 0 && ty == 0) best[blockIdx.y * gridDim.x + blockIdx.x] = least;
}

// ChaCha20: a block of 64 bytes of the stream per thread.
__device__ void quarter(unsigned &a, unsigned &b, unsigned &c, unsigned &d)
{
    a += b, d = __funnelshift_l(d ^ a, d ^ a, 16);
    c += d, b = __funnelshift_l(b ^ c, b ^ c, 12);
    a += b, d = __funnelshift_l(d ^ a, d ^ a, 8);
    c += d, b = __funnelshift_l(b ^ c, b ^ c, 7);
}

extern "C" __global__ void chacha20(const unsigned *key, uint4 *out, int blocks)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= blocks) return;
    unsigned start[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574}, s[16];
#pragma unroll
    for (int k = 0; k < 8; k++) start[4 + k] = key[k];
    start[12] = i, start[13] = 1, start[14] = 2, start[15] = 3;
#pragma unroll
    for (int k = 0; k < 16; k++) s[k] = start[k];
#pragma unroll 1
    for (int round = 0; round < 10; round++) {
        quarter(s[0], s[4], s[8], s[12]);
        quarter(s[1], s[5], s[9], s[13]);
        quarter(s[2], s[6], s[10], s[14]);
        quarter(s[3], s[7], s[11], s[15]);
        quarter(s[0], s[5], s[10], s[15]);
        quarter(s[1], s[6], s[11], s[12]);
        quarter(s[2], s[7], s[8], s[13]);
        quarter(s[3], s[4], s[9], s[14]);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        out[(size_t)i * 4 + k] = make_uint4(s[4 * k] + start[4 * k], s[4 * k + 1] + start[4 * k + 1],
                                            s[4 * k + 2] + start[4 * k + 2], s[4 * k + 3] + start[4 * k + 3]);
    }
}

// Pairs of normal numbers by Box and Muller from a counter.
extern "C" __global__ void normal_numbers(float2 *out, int n, unsigned seed)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned s = (i + seed) * 747796405u + 2891336453u;
        s = ((s >> ((s >> 28) + 4)) ^ s) * 277803737u;
        const unsigned a = (s >> 22) ^ s;
        s = (a + seed) * 747796405u + 2891336453u;
        s = ((s >> ((s >> 28) + 4)) ^ s) * 277803737u;
        const unsigned b = (s >> 22) ^ s;
        const float radius = sqrtf(-2.0f * logf((a + 1.0f) * 2.3283064e-10f)), angle = 6.2831853f * (b >> 8) / 16777216.0f;
        out[i] = make_float2(radius * cosf(angle), radius * sinf(angle));
    }
}

// Angles between points of a sphere, counted (Parboil's tpacf): a block takes 256 points against a share of all.
extern "C" __global__ void angle_counts(const float4 *point, unsigned *count, int n, int share)
{
    __shared__ unsigned bins[32];
    __shared__ float4 tile[256];
    if (threadIdx.x < 32) bins[threadIdx.x] = 0;
    const float4 me = point[blockIdx.x * 256 + threadIdx.x];
    for (int first = 0; first < share; first += 256) {
        __syncthreads();
        tile[threadIdx.x] = point[(blockIdx.y * share + first + threadIdx.x) % n];
        __syncthreads();
        for (int j = 0; j < 256; j++) {
            const float dot = me.x * tile[j].x + me.y * tile[j].y + me.z * tile[j].z;
            const int bin = min(31, (int)((1.0f + fminf(fmaxf(dot, -1.0f), 1.0f)) * 16.0f));
            atomicAdd(&bins[bin], 1u);
        }
    }
    __syncthreads();
    if (threadIdx.x < 32) atomicAdd(&count[threadIdx.x], bins[threadIdx.x]);
}

// Marks where runs begin in a sorted array and how long the array is so far in each block: a block counts its marks.
extern "C" __global__ void run_starts(const int *x, unsigned char *mark, int *marks, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const bool starts = i < n && (i == 0 || x[i] != x[i - 1]);
    if (i < n) mark[i] = starts;
    const int total = __syncthreads_count(starts);
    if (threadIdx.x == 0) marks[blockIdx.x] = total;
}

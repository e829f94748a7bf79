// The fourth set's kernels in CUDA C++; fourth.py has their cases.
#include <cuda_runtime.h>

__constant__ unsigned ROUNDS[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

__device__ unsigned turned(unsigned x, int bits) { return __funnelshift_r(x, x, bits); }

__device__ void compress(unsigned *hash, unsigned *w) {
    unsigned s[8];
#pragma unroll
    for (int k = 0; k < 8; k++) s[k] = hash[k];
#pragma unroll
    for (int t = 0; t < 64; t++) {
        if (t >= 16) {
            const unsigned a = w[t + 1 & 15], b = w[t + 14 & 15];
            w[t & 15] += (turned(a, 7) ^ turned(a, 18) ^ a >> 3) + w[t + 9 & 15];
            w[t & 15] += turned(b, 17) ^ turned(b, 19) ^ b >> 10;
        }
        const unsigned one = s[7] + (turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25)) + (s[4] & s[5] ^ ~s[4] & s[6]) +
                             ROUNDS[t] + w[t & 15];
        const unsigned two = (turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22)) +
                             (s[0] & s[1] ^ s[0] & s[2] ^ s[1] & s[2]);
#pragma unroll
        for (int k = 7; k > 0; k--) s[k] = s[k - 1];
        s[4] += one;
        s[0] = one + two;
    }
#pragma unroll
    for (int k = 0; k < 8; k++) hash[k] += s[k];
}

// SHA-256 of messages of 64 bytes, one in each thread, and of the block of padding that follows each.
extern "C" __global__ void sha256(const uint4 *message, uint4 *digest, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, w[16];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const uint4 m = message[4 * size_t(i) + k];
        w[4 * k] = __byte_perm(m.x, 0, 0x0123);
        w[4 * k + 1] = __byte_perm(m.y, 0, 0x0123);
        w[4 * k + 2] = __byte_perm(m.z, 0, 0x0123);
        w[4 * k + 3] = __byte_perm(m.w, 0, 0x0123);
    }
    compress(h, w);
#pragma unroll
    for (int k = 0; k < 16; k++) w[k] = k == 0 ? 0x80000000u : k == 15 ? 512 : 0;
    compress(h, w);
#pragma unroll
    for (int k = 0; k < 8; k++) h[k] = __byte_perm(h[k], 0, 0x0123);
    digest[2 * size_t(i)] = make_uint4(h[0], h[1], h[2], h[3]);
    digest[2 * size_t(i) + 1] = make_uint4(h[4], h[5], h[6], h[7]);
}

__device__ float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }

// The gates of a GRU cell after its two matrix products, whose three parts lie behind each other in a row.
extern "C" __global__ void gru_gates(const float *in, const float *recurrent, const float *bias, const float *h, float *out,
                                     int n, int width) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int j = i % width;
    const size_t at = size_t(i / width) * 3 * width + j;
    const float reset = sigmoid(in[at] + recurrent[at] + bias[j]);
    const float keep = sigmoid(in[at + width] + recurrent[at + width] + bias[width + j]);
    const float fresh = tanhf(in[at + 2 * width] + reset * (recurrent[at + 2 * width] + bias[2 * width + j]));
    out[i] = fresh + keep * (h[i] - fresh);
}

// A query's products with a cache of keys of 128 numbers of 8 bits, each with its scale: a warp for each key.
extern "C" __global__ void int8_scores(const float4 *query, const char4 *key, const float *scale, float *score,
                                       int positions) {
    const int lane = threadIdx.x % 32, position = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (position >= positions) return;
    const size_t at = size_t(blockIdx.y) * positions + position;
    const float4 q = query[blockIdx.y * 32 + lane];
    const char4 k = key[at * 32 + lane];
    float sum = q.x * k.x + q.y * k.y + q.z * k.z + q.w * k.w;
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (lane == 0) score[at] = sum * scale[at];
}

__device__ float up_to_lane(float sum) {
    for (int d = 1; d < 32; d *= 2) {
        const float other = __shfl_up_sync(0xffffffffu, sum, d);
        if (threadIdx.x % 32 >= d) sum += other;
    }
    return sum;
}

// Of sorted probabilities those before the sum reaches `top`, zeros after them, a block of 32 warps for each row.
extern "C" __global__ void top_p(const float *p, float *out, int *kept, int n, float top) {
    __shared__ float sums[32];
    const size_t row = size_t(blockIdx.x) * n;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float before = 0;
    int count = 0;
    for (int first = 0; first < n; first += blockDim.x) {
        const int i = first + threadIdx.x;
        const float v = i < n ? p[row + i] : 0;
        float sum = up_to_lane(v);
        if (lane == 31) sums[warp] = sum;
        __syncthreads();
        if (warp == 0) sums[lane] = up_to_lane(sums[lane]);
        __syncthreads();
        sum += before + (warp > 0 ? sums[warp - 1] : 0);
        before += sums[31];
        const bool keep = i < n && sum - v < top;
        if (i < n) out[row + i] = keep ? v : 0;
        count += __syncthreads_count(keep);
    }
    if (threadIdx.x == 0) kept[blockIdx.x] = count;
}

// Sobel's edges of bytes; a block of 32 by 32 loads its tile with the halo, and those inside compute.
extern "C" __global__ void sobel_tile(const unsigned char *image, unsigned char *edges, int height, int width) {
    __shared__ int tile[32][32];
    const int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 30 + tx - 1, y = blockIdx.y * 30 + ty - 1;
    const bool inside = x >= 0 && y >= 0 && x < width && y < height;
    tile[ty][tx] = inside ? image[size_t(y) * width + x] : 0;
    __syncthreads();
    if (!inside || tx == 0 || tx == 31 || ty == 0 || ty == 31) return;
    const int (*t)[32] = tile + ty - 1;
    const int right = t[0][tx + 1] + 2 * t[1][tx + 1] + t[2][tx + 1], left = t[0][tx - 1] + 2 * t[1][tx - 1] + t[2][tx - 1];
    const int up = t[0][tx - 1] + 2 * t[0][tx] + t[0][tx + 1], down = t[2][tx - 1] + 2 * t[2][tx] + t[2][tx + 1];
    const float gx = right - left, gy = down - up;
    edges[size_t(y) * width + x] = min(int(sqrtf(gx * gx + gy * gy)), 255);
}

struct Particle {
    float x, y, u, v, charge;
};

// Particles, an array of structures, in a periodic field that is interpolated between its places.
extern "C" __global__ void push_particles(Particle *all, const float2 *field, int n, int side, float dt) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Particle p = all[i];
    const int x = int(p.x), y = int(p.y), x1 = x + 1 == side ? 0 : x + 1, y1 = y + 1 == side ? 0 : y + 1;
    const float fx = p.x - x, fy = p.y - y;
    const float2 a = field[y * side + x], b = field[y * side + x1], c = field[y1 * side + x], d = field[y1 * side + x1];
    p.u += dt * p.charge * ((1 - fy) * ((1 - fx) * a.x + fx * b.x) + fy * ((1 - fx) * c.x + fx * d.x));
    p.v += dt * p.charge * ((1 - fy) * ((1 - fx) * a.y + fx * b.y) + fy * ((1 - fx) * c.y + fx * d.y));
    p.x += dt * p.u;
    p.y += dt * p.v;
    p.x -= floorf(p.x / side) * side;
    p.y -= floorf(p.y / side) * side;
    if (p.x >= side) p.x = 0;  // -1e-9 + side is side in float
    if (p.y >= side) p.y = 0;
    all[i] = p;
}

// A recurrent network over its steps, a block for each sequence and a thread for each of its hidden numbers.
extern "C" __global__ void rnn_sequence(const float *x, const float *weight, float *last, int steps) {
    extern __shared__ float h[];
    const int j = threadIdx.x, width = blockDim.x;
    h[j] = 0;
    __syncthreads();
    for (int t = 0; t < steps; t++) {
        float sum = x[(size_t(t) * gridDim.x + blockIdx.x) * width + j];
        for (int k = 0; k < width; k++) sum += h[k] * weight[k * width + j];
        __syncthreads();
        h[j] = tanhf(sum);
        __syncthreads();
    }
    last[blockIdx.x * width + j] = h[j];
}

// Lower triangular systems of 32 unknowns with many right sides, a thread for each; the matrix is in shared memory.
extern "C" __global__ void solve_lower(const float *lower, const float *b, float *x, int columns) {
    __shared__ float l[32][32];
    for (int k = threadIdx.x; k < 1024; k += blockDim.x) l[k / 32][k % 32] = lower[blockIdx.y * 1024 + k];
    __syncthreads();
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) return;
    const size_t at = size_t(blockIdx.y) * 32 * columns + column;
    float v[32];
#pragma unroll
    for (int r = 0; r < 32; r++) {
        float sum = b[at + size_t(r) * columns];
#pragma unroll
        for (int k = 0; k < r; k++) sum -= l[r][k] * v[k];
        v[r] = sum / l[r][r];
        x[at + size_t(r) * columns] = v[r];
    }
}

// Histogram equalisation: bytes through a table in shared memory that each block makes of the numbers up to each byte.
extern "C" __global__ void equalise(const uchar4 *image, const int *up_to, uchar4 *out, int n) {
    __shared__ unsigned char table[256];
    for (int k = threadIdx.x; k < 256; k += blockDim.x)
        table[k] = 255LL * (up_to[k] - up_to[0]) / (up_to[255] - up_to[0]);
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const uchar4 p = image[i];
        out[i] = make_uchar4(table[p.x], table[p.y], table[p.z], table[p.w]);
    }
}

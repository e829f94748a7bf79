// The third set's kernels in CUDA C++; third.py has their cases.
#include <cuda_runtime.h>

// Weights of 4 bits, eight to a word, times the scale of their group.
extern "C" __global__ void dequantise_int4(const unsigned *words, const float *scale, float4 *out, int n, int group) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned w = words[i];
    const float s = scale[i / group];
    float v[8];
#pragma unroll
    for (int k = 0; k < 8; k++) v[k] = (int(w >> 4 * k & 15) - 8) * s;
    out[2 * i] = make_float4(v[0], v[1], v[2], v[3]);
    out[2 * i + 1] = make_float4(v[4], v[5], v[6], v[7]);
}

// Rows of tokens to the places of their experts, a block for each row.
extern "C" __global__ void dispatch_rows(const float4 *x, const int *place, float4 *out, int quarters) {
    const size_t from = size_t(blockIdx.x) * quarters, to = size_t(place[blockIdx.x]) * quarters;
    for (int j = threadIdx.x; j < quarters; j += blockDim.x) out[to + j] = x[from + j];
}

// A state-space layer: four states of each channel decay and take in x, step after step.
extern "C" __global__ void state_scan(const float *x, const float4 *rate, float *y, int channels, int steps) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= channels) return;
    const float4 a = rate[c];
    float4 s = make_float4(0, 0, 0, 0);
    for (int t = 0; t < steps; t++) {
        const float v = x[size_t(t) * channels + c], d = 1.0f / (1.0f + __expf(-v));
        s.x = s.x * __expf(-d * a.x) + v;
        s.y = s.y * __expf(-d * a.y) + v;
        s.z = s.z * __expf(-d * a.z) + v;
        s.w = s.w * __expf(-d * a.w) + v;
        y[size_t(t) * channels + c] = s.x + s.y + s.z + s.w;
    }
}

__device__ unsigned letter(unsigned v) {
    return v < 26 ? 'A' + v : v < 52 ? 'a' + v - 26 : v < 62 ? '0' + v - 52 : v == 62 ? '+' : '/';
}

// Base64 of 12 bytes in each thread.
extern "C" __global__ void base64(const unsigned *data, uint4 *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned char bytes[12];
#pragma unroll
    for (int k = 0; k < 3; k++) {
        const unsigned w = data[3 * i + k];
#pragma unroll
        for (int b = 0; b < 4; b++) bytes[4 * k + b] = w >> 8 * b & 255;
    }
    unsigned words[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const unsigned v = bytes[3 * k] << 16 | bytes[3 * k + 1] << 8 | bytes[3 * k + 2];
        words[k] = letter(v >> 18) | letter(v >> 12 & 63) << 8 | letter(v >> 6 & 63) << 16 | letter(v & 63) << 24;
    }
    out[i] = make_uint4(words[0], words[1], words[2], words[3]);
}

// An image turned about its centre, bilinear.
extern "C" __global__ void turn_image(const float *image, float *out, int height, int width, float cosine, float sine) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float u = x - 0.5f * width, v = y - 0.5f * height;
    const float sx = fminf(fmaxf(cosine * u - sine * v + 0.5f * width, 0.0f), width - 1.001f);
    const float sy = fminf(fmaxf(sine * u + cosine * v + 0.5f * height, 0.0f), height - 1.001f);
    const int ix = int(sx), iy = int(sy);
    const float fx = sx - ix, fy = sy - iy;
    const float *at = image + size_t(iy) * width + ix;
    const float top = at[0] + fx * (at[1] - at[0]), bottom = at[width] + fx * (at[width + 1] - at[width]);
    out[size_t(y) * width + x] = top + fy * (bottom - top);
}

// Energies of all pairs of atoms by Lennard-Jones in double precision, through tiles of 128 atoms in shared memory.
extern "C" __global__ void pair_energies(const double *x, const double *y, const double *z, double *energy, int n) {
    __shared__ double tile[3][128];
    const int i = blockIdx.x * 128 + threadIdx.x;
    const double px = x[i], py = y[i], pz = z[i];
    double sum = 0;
    for (int first = 0; first < n; first += 128) {
        __syncthreads();
        tile[0][threadIdx.x] = x[first + threadIdx.x];
        tile[1][threadIdx.x] = y[first + threadIdx.x];
        tile[2][threadIdx.x] = z[first + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 128; j++) {
            const double dx = px - tile[0][j], dy = py - tile[1][j], dz = pz - tile[2][j];
            const double r = 1.0 / (dx * dx + dy * dy + dz * dz + 0.5), r3 = r * r * r;
            sum += r3 * (r3 - 1.0);
        }
    }
    energy[i] = sum;
}

// Bits of 32 words in rows and columns exchanged, a warp for each 32 words.
extern "C" __global__ void transpose_bits(const unsigned *in, unsigned *out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned word = in[i], lane = threadIdx.x & 31;
    unsigned mine = 0;
#pragma unroll 8
    for (int bit = 0; bit < 32; bit++) {
        const unsigned column = __ballot_sync(0xffffffffu, word >> bit & 1);
        if (lane == bit) mine = column;
    }
    out[i] = mine;
}

// Densities at particles from those in their own and the eight cells around; particles are in the order of cells.
extern "C" __global__ void particle_density(const float2 *at, const int *begin, float *density, int n, int side, float reach) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float2 p = at[i];
    const int cx = min(int(p.x), side - 1), cy = min(int(p.y), side - 1);
    float sum = 0;
    for (int y = max(cy - 1, 0); y <= min(cy + 1, side - 1); y++) {
        const int row = y * side, from = begin[row + max(cx - 1, 0)], to = begin[row + min(cx + 1, side - 1) + 1];
        for (int j = from; j < to; j++) {
            const float dx = at[j].x - p.x, dy = at[j].y - p.y, left = reach - dx * dx - dy * dy;
            if (left > 0) sum += left * left * left;
        }
    }
    density[i] = sum;
}

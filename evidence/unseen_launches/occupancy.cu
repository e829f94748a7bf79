// Tensor cores, asynchronous copies, grids that stay, and launches with few threads or much of a resource.
#include <cuda_fp16.h>
#include <mma.h>

// A product in half precision: tiles of 64 x 64 by four warps, 32 deep in shared memory; m, n multiples of 64.
extern "C" __global__ void wmma_tiles(const __half *a, const __half *b, float *c, int n, int depth)
{
    using namespace nvcuda;
    __shared__ __half left[64][32 + 8], right[32][64 + 8];
    const int warp = threadIdx.x / 32, wy = warp / 2 * 32, wx = warp % 2 * 32;
    const int row = blockIdx.y * 64, column = blockIdx.x * 64;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) wmma::fill_fragment(sum[i][j], 0.0f);
    for (int k = 0; k < depth; k += 32) {
        for (int i = threadIdx.x; i < 64 * 4; i += 128) {
            *(uint4 *)&left[i / 4][i % 4 * 8] = *(const uint4 *)&a[(size_t)(row + i / 4) * depth + k + i % 4 * 8];
            *(uint4 *)&right[i / 8][i % 8 * 8] = *(const uint4 *)&b[(size_t)(k + i / 8) * n + column + i % 8 * 8];
        }
        __syncthreads();
        for (int d = 0; d < 32; d += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> y[2];
            for (int i = 0; i < 2; i++) {
                wmma::load_matrix_sync(x[i], &left[wy + 16 * i][d], 40);
                wmma::load_matrix_sync(y[i], &right[d][wx + 16 * i], 72);
            }
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 2; j++) wmma::mma_sync(sum[i][j], x[i], y[j], sum[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            wmma::store_matrix_sync(&c[(size_t)(row + wy + 16 * i) * n + column + wx + 16 * j], sum[i][j], n,
                                    wmma::mem_row_major);
}

__device__ void copy_async(float *to, const float *from)
{
    const unsigned address = __cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

// Tiles of 1024 floats come by cp.async in three stages, and are smoothed in shared memory. Each block has a run of
// tiles.
extern "C" __global__ void async_smooth(const float *x, float *out, int tiles)
{
    __shared__ float stage[3][1024];
    const float *mine = x + (size_t)blockIdx.x * tiles * 1024;
    float *to = out + (size_t)blockIdx.x * tiles * 1024;
    for (int t = 0; t < 2; t++) {
        if (t < tiles) copy_async(&stage[t][4 * threadIdx.x], mine + t * 1024 + 4 * threadIdx.x);
        asm volatile("cp.async.commit_group;");
    }
    for (int t = 0; t < tiles; t++) {
        if (t + 2 < tiles) {
            copy_async(&stage[(t + 2) % 3][4 * threadIdx.x], mine + (t + 2) * 1024 + 4 * threadIdx.x);
        }
        asm volatile("cp.async.commit_group;");
        asm volatile("cp.async.wait_group 2;" ::: "memory");
        __syncthreads();
        const float *s = stage[t % 3];
        for (int k = 0; k < 4; k++) {
            const int i = threadIdx.x + 256 * k;
            to[t * 1024 + i] = 0.25f * s[max(i - 1, 0)] + 0.5f * s[i] + 0.25f * s[min(i + 1, 1023)];
        }
        __syncthreads();
    }
}

// As many blocks as fit stay and take tiles of 2048 in turns: each is reversed through shared memory.
extern "C" __global__ void persistent_reverse(const float *x, float *out, int tiles)
{
    __shared__ float tile[2048];
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        for (int i = threadIdx.x; i < 2048; i += blockDim.x) tile[i] = x[(size_t)t * 2048 + i];
        __syncthreads();
        for (int i = threadIdx.x; i < 2048; i += blockDim.x) out[(size_t)t * 2048 + i] = tile[2047 - i];
        __syncthreads();
    }
}

// y = a x + y, whatever the block.
extern "C" __global__ void saxpy(const float *x, const float *y, float *out, int n, float a)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a * x[i] + y[i];
}

// A running mean over 96 KiB of shared memory, so that two blocks fit on a multiprocessor.
extern "C" __global__ void wide_shared(const float *x, float *out, int radius)
{
    extern __shared__ float s[];
    const size_t first = (size_t)blockIdx.x * 24576;
    for (int i = threadIdx.x; i < 24576; i += blockDim.x) s[i] = x[first + i];
    __syncthreads();
    for (int i = threadIdx.x; i < 24576; i += blockDim.x) {
        float sum = 0.0f;
        for (int j = i - radius; j <= i + radius; j++) sum += s[j < 0 ? j + 24576 : j >= 24576 ? j - 24576 : j];
        out[first + i] = sum / (2 * radius + 1);
    }
}

// Cholesky of 8 x 8 matrices, one per thread, in registers; matrices lie side by side.
extern "C" __global__ void cholesky_8(const float *a, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float l[8][8];
#pragma unroll
    for (int r = 0; r < 8; r++)
#pragma unroll
        for (int c = 0; c <= r; c++) l[r][c] = a[(size_t)(r * 8 + c) * n + i];
#pragma unroll
    for (int c = 0; c < 8; c++) {
#pragma unroll
        for (int k = 0; k < c; k++)
#pragma unroll
            for (int r = c; r < 8; r++) l[r][c] -= l[r][k] * l[c][k];
        const float inverse = rsqrtf(l[c][c]);
#pragma unroll
        for (int r = c; r < 8; r++) l[r][c] *= inverse;
    }
#pragma unroll
    for (int r = 0; r < 8; r++)
#pragma unroll
        for (int c = 0; c <= r; c++) out[(size_t)(r * 8 + c) * n + i] = l[r][c];
}

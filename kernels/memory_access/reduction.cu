// Sum of n floats: 4 bytes of memory traffic and one addition per element. The limit is the speed of reading.
// Steps 1 to 3 leave a sum per block and are launched again on these until one is left.
// Measured: n = 2^28, NVIDIA H100 80GB HBM3, 2026-11-21; CUB (cuda.compute 1.2.1) 3071 GB/s, cupy.sum 3044 GB/s.
// ncu: Nsight Compute, same day.

constexpr int BLOCK = 256;  // threads per block of steps 1 to 5
constexpr unsigned ALL = 0xffffffff;

// 1. A tree in shared memory: threads 0, 2, 4, ... add their neighbour, then 0, 4, 8, ... the next but one, and so on.
// Expected: slow, since after each step every warp has half as many threads that add, but takes as long.
// Reached: 907 GB/s, 0.30 of CUB.
extern "C" __global__ void sum_interleaved(const float *in, float *out, size_t n) {
    __shared__ float part[BLOCK];
    const size_t i = size_t(blockIdx.x) * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int step = 1; step < BLOCK; step *= 2) {
        if (threadIdx.x % (2 * step) == 0) {
            part[threadIdx.x] += part[threadIdx.x + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        out[blockIdx.x] = part[0];
    }
}

// 2. The lower half of the threads adds the upper half, then the lower quarter the second, and so on.
// Expected: whole warps have nothing to add and go straight to the barrier, so fewer instructions.
// Reached: 936 GB/s, 0.30 of CUB. Hardly more than step 1: in both the compiler predicates the addition, and the nine
// barriers stay (ncu: the way to shared memory is busy for 82 and 84 %). Numba branches, and there it gains 1.7 times.
extern "C" __global__ void sum_sequential(const float *in, float *out, size_t n) {
    __shared__ float part[BLOCK];
    const size_t i = size_t(blockIdx.x) * BLOCK + threadIdx.x;
    part[threadIdx.x] = i < n ? in[i] : 0.0f;
    __syncthreads();
    for (int step = BLOCK / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            part[threadIdx.x] += part[threadIdx.x + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        out[blockIdx.x] = part[0];
    }
}

// The sum of a warp's values, in lane 0.
__device__ float warp_sum(float value) {
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_down_sync(ALL, value, step);
    }
    return value;
}

// The sum of a block's values, in thread 0. The block has whole warps.
__device__ float block_sum(float value) {
    __shared__ float part[32];
    value = warp_sum(value);
    if (threadIdx.x % 32 == 0) {
        part[threadIdx.x / 32] = value;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        value = warp_sum(threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f);
    }
    return value;
}

// 3. Warps add by shuffles, from register to register; shared memory only passes one sum per warp on.
// Expected: one barrier instead of nine, so much nearer to the limit.
// Reached: 1251 GB/s, 0.41 of CUB.
extern "C" __global__ void sum_shuffle(const float *in, float *out, size_t n) {
    const size_t i = size_t(blockIdx.x) * BLOCK + threadIdx.x;
    const float sum = block_sum(i < n ? in[i] : 0.0f);
    if (threadIdx.x == 0) {
        out[blockIdx.x] = sum;
    }
}

// 4. Each block adds its sum to out with one atomic, so one launch does. out is zero before.
// Expected: no second launch; but one address takes an atomic for every 256 elements, which may now be the limit.
// The order of the blocks, and so the rounding, differs from run to run; that holds for steps 5 and 6 too.
// Reached: 516 GB/s, 0.17 of CUB: 2^20 atomics on one address in 2.1 ms. Less exact, too: relative error 1.2e-5 for
// random numbers, where step 3 had 1.5e-8.
extern "C" __global__ void sum_atomic(const float *in, float *out, size_t n) {
    const size_t i = size_t(blockIdx.x) * BLOCK + threadIdx.x;
    const float sum = block_sum(i < n ? in[i] : 0.0f);
    if (threadIdx.x == 0) {
        atomicAdd(out, sum);
    }
}

// 5. Step 4 with a grid of fixed size, whose threads go through the array in steps of the grid.
// Expected: a block sum and an atomic for thousands of elements instead of 256, so both vanish.
// Reached: 2301 GB/s, 0.75 of CUB: one load under way in each thread, 8 KiB per multiprocessor.
extern "C" __global__ void sum_grid_stride(const float *in, float *out, size_t n) {
    float sum = 0;
    for (size_t i = size_t(blockIdx.x) * BLOCK + threadIdx.x; i < n; i += size_t(gridDim.x) * BLOCK) {
        sum += in[i];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        atomicAdd(out, sum);
    }
}

// 6. Step 5 with 16 bytes per load and eight loads under way in each thread. in is a multiple of 16.
// Expected: more bytes in flight, so the speed of the memory.
// Reached: 3165 GB/s, 1.03 of CUB. ncu: memory is busy for 95 % of the time.
// Tried and left out: 256 and 1024 threads, 1, 2 and 4 float4, fewer blocks, each block a part of its own, __ldcs (at
// most 1.03), the last block to finish adding up the sums instead of atomics (0.99).
constexpr int WIDE = 512;   // threads per block
constexpr int VECTORS = 8;  // float4 per thread and tile
extern "C" __global__ void __launch_bounds__(WIDE) sum_float4(const float *in, float *out, size_t n) {
    const float4 *vectors = reinterpret_cast<const float4 *>(in);
    const size_t tiles = n / (4 * WIDE * VECTORS);
    float4 sums[VECTORS] = {};
    for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float4 v[VECTORS];
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            v[k] = vectors[(tile * VECTORS + k) * WIDE + threadIdx.x];
        }
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            sums[k].x += v[k].x, sums[k].y += v[k].y, sums[k].z += v[k].z, sums[k].w += v[k].w;
        }
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < VECTORS; k++) {
        sum += (sums[k].x + sums[k].y) + (sums[k].z + sums[k].w);
    }
    const size_t rest = tiles * (4 * WIDE * VECTORS);
    for (size_t i = rest + size_t(blockIdx.x) * WIDE + threadIdx.x; i < n; i += size_t(gridDim.x) * WIDE) {
        sum += in[i];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        atomicAdd(out, sum);
    }
}

// Prefix sum of n floats, inclusive: out[i] = in[0] + ... + in[i]. 8 bytes of memory traffic per element: a copy's.
// Measured: n = 2^28, NVIDIA H100 80GB HBM3, 2026-11-21; copy 3010 GB/s, CUB (cuda.compute 1.2.1) 2456 GB/s.

constexpr unsigned ALL = 0xffffffff;

// Inclusive prefix sums of a warp's values.
__device__ float warp_scan(float value) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(ALL, value, step);
        value += lane >= step ? other : 0.0f;
    }
    return value;
}

// 1. Three kinds of launch: each block scans its 256 elements and leaves their sum; the sums are scanned likewise; then
// every element adds the sum of all blocks before its own.
// Expected: at most half of the copy, since the elements are read twice and written twice.
// Reached: 969 GB/s, 0.39 of CUB, 0.32 of the copy.
constexpr int BLOCK = 256;
extern "C" __global__ void scan_blocks(const float *in, float *out, float *block_sums, size_t n) {
    __shared__ float sums[BLOCK / 32];
    const size_t i = size_t(blockIdx.x) * BLOCK + threadIdx.x;
    float value = warp_scan(i < n ? in[i] : 0.0f);
    if (threadIdx.x % 32 == 31) {
        sums[threadIdx.x / 32] = value;
    }
    __syncthreads();
    for (int warp = 0; warp < threadIdx.x / 32; warp++) {
        value += sums[warp];
    }
    if (i < n) {
        out[i] = value;
    }
    if (threadIdx.x == BLOCK - 1) {
        block_sums[blockIdx.x] = value;
    }
}

// scanned: the prefix sums of block_sums. One block fewer than scan_blocks had: the first needs nothing.
extern "C" __global__ void add_before(float *out, const float *scanned, size_t n) {
    const size_t i = size_t(blockIdx.x + 1) * BLOCK + threadIdx.x;
    if (i < n) {
        out[i] += scanned[blockIdx.x];
    }
}

// 2. One launch that reads and writes each element once: decoupled look-back [D. Merrill, M. Garland, "Single-pass
// parallel prefix scan with decoupled look-back", 2016]. A block publishes the sum of its tile at once, as an
// AGGREGATE. Then one warp looks back, 32 tiles at a time, and adds up aggregates until it finds a tile whose PREFIX
// (the sum of all elements up to its end) is known. It publishes the block's own PREFIX and the block goes on.
// Tiles are numbered in the order in which blocks start, so a block waits only for blocks that run already.
// __ldcs and __stcs say that no element is needed twice, which leaves room in the L2 cache for the statuses.
// Expected: towards the copy, less the time for which blocks wait. The rounding differs from run to run.
// Reached: 2539 GB/s, 1.03 of CUB, 0.84 of the copy. ncu: warps mostly wait for the look-back.
// Tried and left out: 128, 384 and 512 threads, 2 to 12 float4 (at most 1.04 of CUB), no streaming (1.01), registers
// without a limit (0.91).
constexpr int THREADS = 256;
constexpr int VECTORS = 8;  // float4 per thread
constexpr int RESIDENT = 5;  // blocks per multiprocessor, with 48 registers per thread: while some wait, others load
constexpr int TILE = 4 * THREADS * VECTORS;
constexpr int WARPS = THREADS / 32;
enum State : unsigned { NOTHING, AGGREGATE, PREFIX };
typedef unsigned long long Status;  // state and value in one word of 8 bytes, so that they are seen together

// Relaxed at the scope of the GPU: not from the L1 cache, and no order with other memory, which a Status does not need.
__device__ void publish(Status *place, State state, float value) {
    const Status status = Status(state) << 32 | __float_as_uint(value);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(place), "l"(status) : "memory");
}

__device__ Status look(const Status *place) {
    Status status;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(status) : "l"(place) : "memory");
    return status;
}

// Sum of all elements before `tile`, which is not the first. Called by a whole warp.
__device__ float look_back(const Status *statuses, int tile) {
    const int lane = threadIdx.x % 32;
    float before = 0;
    for (int latest = tile - 1;; latest -= 32) {  // lane 0 looks at `latest`, lane 1 at the tile before it, ...
        const Status *mine = statuses + max(latest - lane, 0);  // tile 0 has a prefix, so lanes beyond it do not count
        Status status;
        unsigned nothing, prefix;  // lanes whose tile has published nothing, or its prefix
        do {
            status = look(mine);
            nothing = __ballot_sync(ALL, status >> 32 == NOTHING);
            prefix = __ballot_sync(ALL, status >> 32 == PREFIX);
        } while (nothing && (!prefix || __ffs(nothing) < __ffs(prefix)));
        const int used = prefix ? __ffs(prefix) : 32;  // lanes, up to the first with a prefix
        float value = lane < used ? __uint_as_float(unsigned(status)) : 0.0f;
        for (int step = 16; step > 0; step /= 2) {
            value += __shfl_xor_sync(ALL, value, step);
        }
        before += value;
        if (prefix) {
            return before;
        }
    }
}

// statuses: one for each tile; next_tile: a counter. All are zero before. in and out are multiples of 16.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    scan_look_back(const float *in, float *out, size_t n, Status *statuses, unsigned *next_tile) {
    __shared__ unsigned shared_tile;
    __shared__ float before_tile;
    __shared__ __align__(16) float warp_sums[WARPS];  // so that four of them are read at a time
    if (threadIdx.x == 0) {
        shared_tile = atomicAdd(next_tile, 1u);
    }
    __syncthreads();
    const int tile = shared_tile, lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    // A warp has 32 * VECTORS float4 in a row; of these each lane has every 32nd, so that loads are coalesced.
    const size_t first = size_t(tile) * TILE + warp * (TILE / WARPS) + 4 * lane;
    const bool whole = size_t(tile + 1) * TILE <= n;
    float4 v[VECTORS];
#pragma unroll
    for (int k = 0; k < VECTORS; k++) {
        const size_t i = first + 128 * k;
        if (whole) {
            v[k] = __ldcs(reinterpret_cast<const float4 *>(in + i));
        } else {
            v[k] = make_float4(i < n ? in[i] : 0.0f, i + 1 < n ? in[i + 1] : 0.0f, i + 2 < n ? in[i + 2] : 0.0f,
                               i + 3 < n ? in[i + 3] : 0.0f);
        }
    }

    // Prefix sums within each float4, then over the lanes, then over the warp's rows of 32 float4.
    float row[VECTORS];
#pragma unroll
    for (int k = 0; k < VECTORS; k++) {
        v[k].y += v[k].x, v[k].z += v[k].y, v[k].w += v[k].z;
        row[k] = warp_scan(v[k].w);
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < VECTORS; k++) {
        const float before_lane = __shfl_up_sync(ALL, row[k], 1), before = sum + (lane ? before_lane : 0.0f);
        sum += __shfl_sync(ALL, row[k], 31);
        v[k].x += before, v[k].y += before, v[k].z += before, v[k].w += before;
    }
    if (lane == 0) {
        warp_sums[warp] = sum;
    }
    __syncthreads();

    float before = 0, total = 0;  // sums of the warps before this one, and of the whole tile
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        before += w < warp ? warp_sums[w] : 0.0f;
        total += warp_sums[w];
    }
    if (warp == 0) {
        float earlier = 0;
        if (tile > 0) {
            if (lane == 0) {
                publish(statuses + tile, AGGREGATE, total);
            }
            earlier = look_back(statuses, tile);
        }
        if (lane == 0) {
            publish(statuses + tile, PREFIX, earlier + total);
            before_tile = earlier;
        }
    }
    __syncthreads();
    before += before_tile;

#pragma unroll
    for (int k = 0; k < VECTORS; k++) {
        const size_t i = first + 128 * k;
        const float4 result = make_float4(v[k].x + before, v[k].y + before, v[k].z + before, v[k].w + before);
        if (whole) {
            __stcs(reinterpret_cast<float4 *>(out + i), result);
        } else {
            if (i < n) out[i] = result.x;
            if (i + 1 < n) out[i + 1] = result.y;
            if (i + 2 < n) out[i + 2] = result.z;
            if (i + 3 < n) out[i + 3] = result.w;
        }
    }
}

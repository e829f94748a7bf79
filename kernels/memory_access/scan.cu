// Prefix sum of n floats, inclusive: out[i] = in[0] + ... + in[i]. 8 bytes of memory traffic per element: a copy's.
// Measured: n = 2^28, NVIDIA H100 80GB HBM3, 2026-11-25; copy 3002 GB/s, CUB (cuda.compute 1.2.1) 2478 GB/s.

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

// The sum of a warp's values, in every lane.
__device__ float warp_sum(float value) {
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(ALL, value, step);
    }
    return value;
}

// 1. Three kinds of launch: each block scans its 256 elements and leaves their sum; the sums are scanned likewise; then
// every element adds the sum of all blocks before its own.
// Expected: at most half of the copy, since the elements are read twice and written twice.
// Reached: 972 GB/s, 0.39 of CUB, 0.32 of the copy.
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
// Reached: 2541 GB/s, 1.03 of CUB, 0.85 of the copy. ncu: warps mostly wait for the look-back.
// Tried and left out: 128, 384 and 512 threads, 2 to 12 float4 (at most 1.04 of CUB), no streaming (1.01), registers
// without a limit (0.91).
constexpr int THREADS = 256;
constexpr int VECTORS = 8;  // float4 of a thread
constexpr int RESIDENT = 5;  // blocks per multiprocessor, with 48 registers per thread: while some wait, others load
constexpr int TILE = 4 * THREADS * VECTORS;
constexpr int WARPS = THREADS / 32;
enum State : unsigned { NOTHING, AGGREGATE, PREFIX };
typedef unsigned long long Status;  // state and value in one word of 8 bytes, so that they are seen together

// Relaxed at the scope of the GPU: not from the L1 cache, and no order with other memory, which a Status does not need.
__device__ void publish(Status *place, unsigned state, float value) {
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
        before += warp_sum(lane < used ? __uint_as_float(unsigned(status)) : 0.0f);
        if (prefix) {
            return before;
        }
    }
}

// A tile's float4: of those of a warp, which lie in a row, each lane has every 32nd, so that loads are coalesced.
template <int VECTORS>
__device__ void load_tile(float4 (&v)[VECTORS], const float *in, size_t first, size_t n, bool whole) {
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
}

// Make v prefix sums within the warp; return the warp's sum.
template <int VECTORS>
__device__ float scan_of_warp(float4 (&v)[VECTORS]) {
    const int lane = threadIdx.x % 32;
    float row[VECTORS];  // prefix sums within each float4, then over the lanes, then over the warp's rows of 32 float4
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
    return sum;
}

// Add up the warps' sums: those before this one, and all.
template <int WARPS>
__device__ float2 before_and_all(const float *warp_sums) {
    float2 sums = {0, 0};
#pragma unroll
    for (int w = 0; w < WARPS; w++) {
        sums.x += w < threadIdx.x / 32 ? warp_sums[w] : 0.0f;
        sums.y += warp_sums[w];
    }
    return sums;
}

__device__ void store(float *out, size_t i, size_t n, bool whole, float4 v, float before) {
    const float4 result = make_float4(v.x + before, v.y + before, v.z + before, v.w + before);
    if (whole) {
        __stcs(reinterpret_cast<float4 *>(out + i), result);
    } else {
        if (i < n) out[i] = result.x;
        if (i + 1 < n) out[i + 1] = result.y;
        if (i + 2 < n) out[i + 2] = result.z;
        if (i + 3 < n) out[i + 3] = result.w;
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
    const size_t first = size_t(tile) * TILE + warp * (TILE / WARPS) + 4 * lane;
    const bool whole = size_t(tile + 1) * TILE <= n;
    float4 v[VECTORS];
    load_tile(v, in, first, n, whole);
    const float sum = scan_of_warp(v);
    if (lane == 0) {
        warp_sums[warp] = sum;
    }
    __syncthreads();

    const float2 sums = before_and_all<WARPS>(warp_sums);
    if (warp == 0) {
        float earlier = 0;
        if (tile > 0) {
            if (lane == 0) {
                publish(statuses + tile, AGGREGATE, sums.y);
            }
            earlier = look_back(statuses, tile);
        }
        if (lane == 0) {
            publish(statuses + tile, PREFIX, earlier + sums.y);
            before_tile = earlier;
        }
    }
    __syncthreads();
    const float before = sums.x + before_tile;
#pragma unroll
    for (int k = 0; k < VECTORS; k++) {
        store(out, first + 128 * k, n, whole, v[k], before);
    }
}

// 3. A block takes every gridDim.x-th tile, so it knows the sum up to its last one and adds those of the gridDim.x tiles
// since. It writes a tile one round after it published its sum: in between it scans the next one and asks for the one
// after, so memory is busy all the time, and the sums that it then reads were published long ago. The order in which
// sums are added does not change from run to run.
// Expected: no waiting for a look-back, so nearer to the copy.
// Reached: 2851 GB/s, 1.15 of CUB, 0.95 of the copy. Tiles of 3, 4 and 5 float4 a thread: 0.92, 0.93 and 0.94.
// Of other lengths from 2^23 on 1.00, the least 0.96, from 2^18 to 2^21 1.00, but 0.66 and 0.71 for 2^20 and 2^22, of which
// the driver's copy takes 0.6 to 0.8 of its time for lengths beside them; from 16,385 to 2^18 0.74, the least 0.69: 4.7 to
// 5.2 µs, a copy 3.4 to 3.9. On an H200, whose copy has 4270 GB/s, 0.85 over 52 lengths, from 2^23 on 0.91, the least 0.87,
// and 1.10 to 1.48 of CUB at each; there an empty launch takes 2.8 µs, a kernel that loads and stores one float4 per thread
// 3.5 to 3.7 up to 2^18, and 10.8 for 2^22, which the driver copies in 8.0 and this scans in 12.3 (2026-11-27).
// What limits it, by ncu: for 65,536 5 % of the slots for instructions and 4 % of the L2 cache's are used: it is the way of
// sums, 0.9 µs to memory and back. For 2^20 28 and 18 %, for 2^22 24 and 29 %: warps wait for loads and at barriers, since a
// block has one or two tiles.
// Tried and left out: tiles that stay in registers where each block has one (no faster for 2^20, slower for 230,882), sums of
// warps added by shuffles (no faster); one tile of 128 or 256 threads per block, whose warps publish for themselves behind one
// barrier (4.4 µs for 7,385 to 32,768, this 4.7 to 4.8 in the same run; no faster from 65,536 on); eight blocks that send sums
// through a cluster's shared memory (4.2 µs for 4096); bulk copies by TMA, of which a thread scans 12 to 28 elements that lie
// side by side (2^28 547 µs, this 574; 2.4 million 8.7 and 10.4, 2^22 12.0 and 12.3, 8 million 26.6 and 20.3, 17 million 45
// and 40; H200, 2026-11-27).
// The whole grid must be resident, since blocks wait for one another. Dynamic shared memory: two tiles, the one that is
// written next and the one that is being scanned; a thread reads what it wrote. `sums`: one for each tile, of which none
// has this launch's `flag`, so that nothing must be set to zero between launches, which takes 2 µs.
constexpr int PIPELINED_THREADS = 512, PIPELINED_WARPS = PIPELINED_THREADS / 32;
template <int VECTORS>
__global__ void __launch_bounds__(PIPELINED_THREADS, 2)
    scan_pipelined(const float *in, float *out, size_t n, Status *sums, unsigned flag) {
    constexpr int TILE = 4 * PIPELINED_THREADS * VECTORS;
    extern __shared__ float4 scanned[];
    __shared__ __align__(16) float warp_sums[PIPELINED_WARPS], since[PIPELINED_WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, round = gridDim.x;
    const int tiles = (n + TILE - 1) / TILE, in_tile = warp * (TILE / PIPELINED_WARPS) + 4 * lane;
    const auto first = [&](int tile) { return size_t(tile) * TILE + in_tile; };
    const auto whole = [&](int tile) { return size_t(tile + 1) * TILE <= n; };
    float4 *kept = scanned + threadIdx.x, *other = kept + PIPELINED_THREADS * VECTORS;
    float before_tile = 0, before_warp = 0;  // of the tile that is written in this round
    float4 v[VECTORS];
    load_tile(v, in, first(blockIdx.x), n, whole(blockIdx.x));
    for (int tile = blockIdx.x; tile < tiles + round; tile += round) {
        if (tile < tiles) {
            const float sum = scan_of_warp(v);
            if (lane == 0) {
                warp_sums[warp] = sum;
            }
#pragma unroll
            for (int k = 0; k < VECTORS; k++) {
                kept[k * PIPELINED_THREADS] = v[k];
            }
        }
        __syncthreads();
        const float2 sums_of_tile = before_and_all<PIPELINED_WARPS>(warp_sums);
        if (tile < tiles && threadIdx.x == 0) {
            publish(sums + tile, flag, sums_of_tile.y);
        }
        const int written = tile - round;  // less than 0 in the first round
        const int latest = written - 1 - int(threadIdx.x), oldest = max(written - round, 0);
        Status status = 0;
        if (latest >= oldest) {  // asked for before the next tile, whose loads would be in its way
            status = look(sums + latest);
        }
        if (tile + round < tiles) {
            load_tile(v, in, first(tile + round), n, whole(tile + round));
        }
        float sum = 0;  // of the tiles since the one that this block wrote last, or of all before its first
        for (int k = latest; k >= oldest; k -= PIPELINED_THREADS) {
            while (status >> 32 != flag) {
                status = look(sums + k);
            }
            sum += __uint_as_float(unsigned(status));
            if (k - PIPELINED_THREADS >= oldest) {
                status = look(sums + k - PIPELINED_THREADS);
            }
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            since[warp] = sum;
        }
        __syncthreads();
        if (written >= 0) {
            before_tile += before_and_all<PIPELINED_WARPS>(since).y;
#pragma unroll
            for (int k = 0; k < VECTORS; k++) {
                const float4 value = other[k * PIPELINED_THREADS];
                store(out, first(written) + 128 * k, n, whole(written), value, before_tile + before_warp);
            }
        }
        before_warp = sums_of_tile.x;
        float4 *const swapped = kept;
        kept = other, other = swapped;
    }
}

// 4. A few thousand elements: every block adds up all that lie before its own, at most MOST float4 of a thread, and none
// waits for another. It asks for all of them at once.
// Expected: nearly one load more than a copy, which step 3's way of sums through memory exceeds by 0.9 µs.
// Reached: 3.6 to 3.8 µs up to 8192 elements, where step 3 takes 4.7 to 4.9 and a copy 3.4, 0.89 to 0.94 of it; 4.1 for 16384
// (H100, 2026-11-27). On an H200 3.7 where step 3 takes 4.6, 0.88 of a copy. Of 32768 the last block would read 124 KB: 5.7.
constexpr int FEW_THREADS = 256, FEW_WARPS = FEW_THREADS / 32;
template <int MOST>
__global__ void __launch_bounds__(FEW_THREADS) scan_few(const float *in, float *out, size_t n) {
    __shared__ __align__(16) float warp_sums[FEW_WARPS], before_sums[FEW_WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, before_block = blockIdx.x * FEW_THREADS;
    const size_t first = 4 * size_t(before_block + threadIdx.x);
    const bool whole = 4 * size_t(before_block + FEW_THREADS) <= n;
    float4 v[1], earlier[MOST];
#pragma unroll
    for (int k = 0; k < MOST; k++) {
        const int i = threadIdx.x + k * FEW_THREADS;
        earlier[k] = i < before_block ? reinterpret_cast<const float4 *>(in)[i] : make_float4(0, 0, 0, 0);
    }
    load_tile(v, in, first, n, whole);
    const float sum = scan_of_warp(v);
    float before = 0;
#pragma unroll
    for (int k = 0; k < MOST; k++) {
        before += (earlier[k].x + earlier[k].y) + (earlier[k].z + earlier[k].w);
    }
    before = warp_sum(before);
    if (lane == 0) {
        warp_sums[warp] = sum, before_sums[warp] = before;
    }
    __syncthreads();
    store(out, first, n, whole, v[0], before_and_all<FEW_WARPS>(warp_sums).x + before_and_all<FEW_WARPS>(before_sums).y);
}

// Stream compaction, in order: the elements of x that are greater than `threshold`, one after the other in out, and
// their number in *count. The place of an element is the number of those kept before it, wherever in x they are.
//
// All steps work on tiles, one for a block at a time. A warp has 32 * ITEMS neighbouring elements; lane l holds
// elements l, 32 + l, 64 + l, ... of them, so loads are coalesced, and one ballot ranks 32 neighbours.
//
// Measured: 2^28 float32, NVIDIA H100 80GB HBM3, 2026-11-21, bytes of x once and of what is kept once; copy 3008 GB/s.
// CUB 3.0.1 (DeviceSelect::If) 2210, 2295 and 2225 GB/s with 10, 50 and 90 % kept, cupy's x[x > threshold] 258, 342 and
// 423.

constexpr unsigned ALL = 0xffffffff;
typedef unsigned long long Word;

// The elements of a lane in registers; those past the end become the threshold, which is not kept.
template <int ITEMS, int THREADS, typename T>
__device__ void load_tile(T (&value)[ITEMS], const T *x, size_t tile, T threshold, size_t n) {
    constexpr size_t TILE = THREADS * ITEMS;
    const size_t begin = tile * TILE + threadIdx.x / 32 * (32 * ITEMS) + threadIdx.x % 32;
    if ((tile + 1) * TILE <= n) {
#pragma unroll
        for (int k = 0; k < ITEMS; k++) value[k] = x[begin + 32 * k];
    } else {
#pragma unroll
        for (int k = 0; k < ITEMS; k++) value[k] = begin + 32 * k < n ? x[begin + 32 * k] : threshold;
    }
}

// How many elements the warp keeps.
template <int ITEMS, typename T>
__device__ unsigned kept_by_warp(const T (&value)[ITEMS], T threshold) {
    unsigned number = 0;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) number += __popc(__ballot_sync(ALL, value[k] > threshold));
    return number;
}

// How many the warps before this one keep, and all of the block.
struct Place {
    unsigned before, total;
};

template <int WARPS>
__device__ Place place_in_tile(const unsigned (&kept_by)[WARPS]) {
    Place place = {0, 0};
#pragma unroll
    for (unsigned w = 0; w < WARPS; w++) {
        if (w < threadIdx.x / 32) place.before += kept_by[w];
        place.total += kept_by[w];
    }
    return place;
}

// The warp's kept elements to to[place], to[place + 1], ... in shared memory.
template <int ITEMS, typename T>
__device__ void compact(T *to, const T (&value)[ITEMS], T threshold, unsigned place) {
    const unsigned below = (1u << threadIdx.x % 32) - 1;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const bool keep = value[k] > threshold;
        const unsigned votes = __ballot_sync(ALL, keep);
        if (keep) to[place + __popc(votes & below)] = value[k];
        place += __popc(votes);
    }
}

// A tile's kept elements from shared memory to their places; each warp's 32 elements in whole sectors.
template <typename T>
__device__ void write_tile(T *out, Word first, const T *kept, unsigned total) {
    const int shift = (first + reinterpret_cast<size_t>(out) / sizeof(T)) % 32;
    for (int k = int(threadIdx.x) - shift; k < int(total); k += blockDim.x) {
        if (k >= 0) out[first + k] = kept[k];
    }
}

template <typename T>
__device__ T sum_of_warp(T value) {
#pragma unroll
    for (int k = 16; k > 0; k /= 2) value += __shfl_xor_sync(ALL, value, k);
    return value;
}

// 1. Three kernels: count what each tile keeps, scan the counts, then load everything again and write.
// Expected: x is read twice, so at best (for half of the elements kept) 1.5 / 2.5 of the bandwidth of one reading.
// Reached: 1484, 1727 and 1878 GB/s with 10, 50 and 90 % kept, 0.67, 0.75 and 0.84 of CUB.
constexpr int THREADS = 256, ITEMS = 16;

template <typename T>
__global__ void count_tiles(const T *x, T threshold, unsigned *counts, size_t n) {
    __shared__ unsigned kept_by[THREADS / 32];
    T value[ITEMS];
    load_tile<ITEMS, THREADS>(value, x, blockIdx.x, threshold, n);
    const unsigned number = kept_by_warp(value, threshold);
    if (threadIdx.x % 32 == 0) kept_by[threadIdx.x / 32] = number;
    __syncthreads();
    if (threadIdx.x == 0) counts[blockIdx.x] = place_in_tile(kept_by).total;
}

// Exclusive scan by one block of 1024 threads, each with PART neighbours of the counts at a time.
constexpr int PART = 8;

extern "C" __global__ void scan_counts(const unsigned *counts, Word *starts, Word *count, unsigned tiles) {
    __shared__ unsigned sums[32];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    Word first = 0;
    for (unsigned base = 0; base < tiles; base += 1024 * PART) {
        const unsigned begin = base + threadIdx.x * PART;
        unsigned own[PART], sum = 0;
#pragma unroll
        for (int k = 0; k < PART; k++) sum += own[k] = begin + k < tiles ? counts[begin + k] : 0;
        unsigned inclusive = sum;
#pragma unroll
        for (int k = 1; k < 32; k *= 2) {
            const unsigned other = __shfl_up_sync(ALL, inclusive, k);
            if (lane >= k) inclusive += other;
        }
        if (lane == 31) sums[warp] = inclusive;
        __syncthreads();
        const Place place = place_in_tile(sums);
        Word start = first + place.before + inclusive - sum;
#pragma unroll
        for (int k = 0; k < PART; k++) {
            if (begin + k < tiles) starts[begin + k] = start;
            start += own[k];
        }
        first += place.total;
        __syncthreads();
    }
    if (threadIdx.x == 0) *count = first;
}

template <typename T>
__global__ void write_tiles(const T *x, T threshold, T *out, const Word *starts, size_t n) {
    __shared__ T kept[THREADS * ITEMS];
    __shared__ unsigned kept_by[THREADS / 32];
    T value[ITEMS];
    load_tile<ITEMS, THREADS>(value, x, blockIdx.x, threshold, n);
    const unsigned number = kept_by_warp(value, threshold);
    if (threadIdx.x % 32 == 0) kept_by[threadIdx.x / 32] = number;
    __syncthreads();
    const Place place = place_in_tile(kept_by);
    compact(kept, value, threshold, place.before);
    __syncthreads();
    write_tile(out, starts[blockIdx.x], kept, place.total);
}

// 2. One kernel with a decoupled look-back [Merrill, Garland: Single-pass Parallel Prefix Scan, 2016]. A block
// announces what its tile keeps, and then adds up what its predecessors announced, 32 tiles at a time, until it comes
// to one that knows its place already. Tiles are given out in the order in which blocks start, so no block waits for
// one that has not started. `states` (one per tile) and `ticket` start at zero.
// Expected: x is read once: 1.5 / 2.5 of the bytes of step 1.
// The first look is delayed: the announcements take about that long, and asking for them again and again slows down
// the loads of others. Larger tiles mean fewer looks.
// Reached: 2286, 2350 and 2385 GB/s with 10, 50 and 90 % kept, 1.03, 1.02 and 1.07 of CUB.
constexpr int LOOK_BACK_THREADS = 128, LOOK_BACK_ITEMS = 32, DELAY_NANOSECONDS = 1200, AGAIN_NANOSECONDS = 50;
constexpr Word ANNOUNCED = Word(1) << 62, PLACED = Word(2) << 62, VALUE = ANNOUNCED - 1;  // 0: neither yet

__device__ Word load_state(const Word *state) {
    Word value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(state) : "memory");
    return value;
}

__device__ void store_state(Word *state, Word value) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(state), "l"(value) : "memory");
}

// How many elements the tiles before `tile` keep; by one warp.
__device__ Word look_back(const Word *states, unsigned tile) {
    Word before = 0;
    for (long long nearest = (long long)tile - 1;; nearest -= 32) {
        const long long other = nearest - threadIdx.x % 32;
        Word state = 0;
        while (true) {
            if (state == 0) state = other >= 0 ? load_state(&states[other]) : PLACED;
            if (__all_sync(ALL, state != 0)) break;
            __nanosleep(AGAIN_NANOSECONDS);
        }
        const unsigned placed = __ballot_sync(ALL, (state & PLACED) != 0);
        const unsigned needed = placed ? __ffs(placed) : 32;  // lanes up to the nearest that knows its place
        before += sum_of_warp(threadIdx.x % 32 < needed ? state & VALUE : 0);
        if (placed) return before;
    }
}

template <typename T>
__global__ void __launch_bounds__(LOOK_BACK_THREADS)
    select_look_back(const T *x, T threshold, T *out, Word *count, Word *states, unsigned *ticket, size_t n) {
    constexpr int TILE = LOOK_BACK_THREADS * LOOK_BACK_ITEMS;
    __shared__ T kept[TILE];
    __shared__ unsigned kept_by[LOOK_BACK_THREADS / 32], taken;
    __shared__ Word first;
    if (threadIdx.x == 0) taken = atomicAdd(ticket, 1);
    __syncthreads();
    const unsigned tile = taken;
    T value[LOOK_BACK_ITEMS];
    load_tile<LOOK_BACK_ITEMS, LOOK_BACK_THREADS>(value, x, tile, threshold, n);
    const unsigned number = kept_by_warp(value, threshold);
    if (threadIdx.x % 32 == 0) kept_by[threadIdx.x / 32] = number;
    __syncthreads();
    const Place place = place_in_tile(kept_by);
    if (threadIdx.x == 0) store_state(&states[tile], (tile ? ANNOUNCED : PLACED) | place.total);
    compact(kept, value, threshold, place.before);
    if (threadIdx.x < 32) {
        Word before = 0;
        if (tile) {
            __nanosleep(DELAY_NANOSECONDS);
            before = look_back(states, tile);
        }
        if (threadIdx.x == 0) {
            if (tile) store_state(&states[tile], PLACED | (before + place.total));
            if (size_t(tile + 1) * TILE >= n) *count = before + place.total;
            first = before;
        }
    }
    __syncthreads();
    write_tile(out, first, kept, place.total);
}

// 3. A block takes every gridDim.x-th tile and needs no chain of look-backs: it knows where its last tile began, so it
// adds what the gridDim.x tiles since then keep. Between the announcement of a tile and the writing of it a whole round
// of tiles goes by, in which the next tile is loaded: what the block then asks for was announced long ago.
// Expected: memory never waits for the look-back.
// Reached: 2454, 2768 and 2879 GB/s with 10, 50 and 90 % kept, 1.11, 1.21 and 1.29 of CUB.
// With few elements kept its blocks wait at barriers more than for memory (ncu, 10 %: 7.0 warps per issue against 3.7,
// memory at 68 %). Tried and slower, 50 % kept, against 602 µs in that run: writing in the round of the announcement
// (1020 µs), tiles of 32 and 16 KB (637, 648 µs), three blocks per multiprocessor with 40 registers (1160 µs).
// The whole grid must be resident, since blocks wait for one another: host code asks the driver how many fit.
// Dynamic shared memory: two tiles. `counts` (one per tile) starts at zero.
constexpr int PIPELINED_THREADS = 512;
constexpr unsigned READY = 1u << 31;

__device__ void announce(unsigned *count, unsigned value) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(count), "r"(value | READY) : "memory");
}

__device__ unsigned announced(const unsigned *count) {
    unsigned value;
    do {
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(count) : "memory");
    } while (!(value & READY));
    return value & ~READY;
}

template <typename T, int ITEMS>
__global__ void __launch_bounds__(PIPELINED_THREADS, 2)
    select_pipelined(const T *x, T threshold, T *out, Word *count, unsigned *counts, size_t n) {
    constexpr int TILE = PIPELINED_THREADS * ITEMS, WARPS = PIPELINED_THREADS / 32;
    extern __shared__ unsigned char shared[];
    __shared__ unsigned kept_by[WARPS], since[WARPS];
    T *kept = reinterpret_cast<T *>(shared), *kept_before = kept + TILE;
    const unsigned tiles = (n + TILE - 1) / TILE;
    Word first = 0;  // where the tile before begins
    unsigned total_before = 0;
    T value[ITEMS];
    load_tile<ITEMS, PIPELINED_THREADS>(value, x, blockIdx.x, threshold, n);
    for (unsigned tile = blockIdx.x; tile < tiles + gridDim.x; tile += gridDim.x) {
        const bool loaded = tile < tiles, kept_one = tile >= gridDim.x;
        const unsigned before = tile - gridDim.x;  // the tile that is written in this round, if kept_one
        if (loaded) {
            const unsigned number = kept_by_warp(value, threshold);
            if (threadIdx.x % 32 == 0) kept_by[threadIdx.x / 32] = number;
        }
        __syncthreads();
        unsigned total = 0;
        if (loaded) {
            const Place place = place_in_tile(kept_by);
            total = place.total;
            if (threadIdx.x == 0) announce(&counts[tile], total);
            compact(kept, value, threshold, place.before);
            if (tile + gridDim.x < tiles) load_tile<ITEMS, PIPELINED_THREADS>(value, x, tile + gridDim.x, threshold, n);
        }
        if (kept_one) {
            unsigned number = 0;
            for (unsigned k = threadIdx.x; k < min(gridDim.x, before); k += PIPELINED_THREADS) {
                number += announced(&counts[before - 1 - k]);
            }
            number = sum_of_warp(number);
            if (threadIdx.x % 32 == 0) since[threadIdx.x / 32] = number;
        }
        __syncthreads();
        if (kept_one) {
            first += place_in_tile(since).total;
            write_tile(out, first, kept_before, total_before);
            if (before == tiles - 1 && threadIdx.x == 0) *count = first + total_before;
        }
        total_before = total;
        T *const other = kept;
        kept = kept_before, kept_before = other;
    }
}

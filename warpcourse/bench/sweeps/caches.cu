// Loads and stores by how many lines and sectors a request has, from the L1, the L2 and memory.
//
// `per_line` lanes that follow each other use one line of 128 bytes, each its own T of it, the others other lines.
// The lines lie side by side (in the L1), or are spread by a hash of warp, round and group of lanes (L2 and memory).

struct Load4 {
    unsigned x;
    __device__ void l1(const char *at) { asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(at)); }
    __device__ void l2(const char *at) { asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(x) : "l"(at)); }
    __device__ void store(char *at) { asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(1) : "memory"); }
    __device__ unsigned sum() { return x; }
};
struct Load8 {
    unsigned x, y;
    __device__ void l1(const char *at) { asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "l"(at)); }
    __device__ void l2(const char *at) { asm volatile("ld.global.cg.v2.u32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "l"(at)); }
    __device__ void store(char *at) { asm volatile("st.global.v2.u32 [%0], {%1, %1};" ::"l"(at), "r"(1) : "memory"); }
    __device__ unsigned sum() { return x ^ y; }
};
struct Load16 {
    unsigned x, y, z, w;
    __device__ void l1(const char *at) {
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(at));
    }
    __device__ void l2(const char *at) {
        asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(at));
    }
    __device__ void store(char *at) {
        asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(at), "r"(1) : "memory");
    }
    __device__ unsigned sum() { return x ^ y ^ z ^ w; }
};

__device__ unsigned spread(unsigned x) { return x * 2654435761u; }  // Knuth's multiplicative hash: the upper bits

// 32 KiB, read again and again. `skew`: by how many T the place in a line moves from line to line (banks). `step` is 0,
// which the compiler does not know.
template <typename T>
__global__ void l1_hits(const char *data, unsigned per_line, unsigned skew, int step, int rounds, unsigned *out) {
    const unsigned lane = threadIdx.x % 32, group = lane / per_line;
    const unsigned place = (lane % per_line + skew * group) * sizeof(T) % 128;
    const char *at = data + group * 128 + place;
    unsigned sum = 0;
    for (int round = 0; round < rounds; round += 8) {
        T got[8];
#pragma unroll
        for (int k = 0; k < 8; k++) got[k].l1(at + k * 4096);
#pragma unroll
        for (int k = 0; k < 8; k++) sum ^= got[k].sum();
        at += step;
    }
    if (sum == 0x12345) out[threadIdx.x] = sum;
}

// The place of a lane in one of 2^bits lines.
__device__ size_t scattered(unsigned per_line, unsigned bits, unsigned round, unsigned size) {
    const unsigned lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const unsigned hash = spread((warp * 32 + round) * 32 + lane / per_line), line = hash >> (32 - bits);
    // With fewer than 128 bytes of a line any part of it may be the one.
    const unsigned first = (hash >> 2) * per_line * size;
    return size_t(line) * 128 + (first + lane % per_line * size) % 128;
}

template <typename T> __global__ void l2_loads(char *data, unsigned per_line, unsigned bits, int rounds, unsigned *out) {
    unsigned sum = 0;
    for (int round = 0; round < rounds; round += 4) {
        T got[4];
#pragma unroll
        for (int k = 0; k < 4; k++) got[k].l2(data + scattered(per_line, bits, round + k, sizeof(T)));
#pragma unroll
        for (int k = 0; k < 4; k++) sum ^= got[k].sum();
    }
    if (sum == 0x12345) out[threadIdx.x] = sum;
}

template <typename T> __global__ void l2_stores(char *data, unsigned per_line, unsigned bits, int rounds, unsigned *out) {
    T value;
#pragma unroll 4
    for (int round = 0; round < rounds; round++) value.store(data + scattered(per_line, bits, round, sizeof(T)));
}

// Runs of `run` T, `apart` T from one to the next, in order: a thread writes or reads its own run, place after place.
// There are mask + 1 of them.
template <typename T> __device__ char *run_at(char *data, unsigned apart, unsigned mask, unsigned round) {
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    return data + size_t((round * threads + thread) & mask) * apart * sizeof(T);
}

template <typename T> __global__ void store_runs(char *data, unsigned run, unsigned apart, unsigned mask, int rounds) {
    T value;
    for (int round = 0; round < rounds; round++) {
        char *at = run_at<T>(data, apart, mask, round);
        for (unsigned k = 0; k < run; k++) value.store(at + k * sizeof(T));
    }
}

template <typename T>
__global__ void loads_apart(char *data, unsigned apart, unsigned mask, int rounds, unsigned *out) {
    unsigned sum = 0;
    for (int round = 0; round < rounds; round += 4) {
        T got[4];
#pragma unroll
        for (int k = 0; k < 4; k++) got[k].l2(run_at<T>(data, apart, mask, round + k));
#pragma unroll
        for (int k = 0; k < 4; k++) sum ^= got[k].sum();
    }
    if (sum == 0x12345) out[threadIdx.x] = sum;
}

// A T of each of so many arrays of n, and one to each of so many others, behind each other.
template <typename T>
__global__ void streams(char *data, unsigned n, int reads, int writes, unsigned *out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = 0;
    T got[3], value;
#pragma unroll
    for (int k = 0; k < 3; k++)
        if (k < reads) got[k].l1(data + (size_t(k) * n + i) * sizeof(T));
#pragma unroll
    for (int k = 0; k < 3; k++)
        if (k < reads) sum ^= got[k].sum();
    if (sum == 0x12345) out[threadIdx.x] = sum;
    else
        for (int k = 0; k < writes; k++) value.store(data + (size_t(reads + k) * n + i) * sizeof(T));
}

// All threads walk through one list, or each warp through its own, `words` behind each other: AHEAD words at a time.
template <int AHEAD>
__global__ void lists(const unsigned *list, int words, int own, long long *cycles, unsigned *out) {
    const unsigned *mine = list + own * words * (threadIdx.x / 32);
    const long long begin = clock64();
    unsigned sum = 0;
    for (int i = 0; i < words; i += AHEAD) {
        unsigned got[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) asm volatile("ld.global.u32 %0, [%1];" : "=r"(got[k]) : "l"(mine + i + k));
#pragma unroll
        for (int k = 0; k < AHEAD; k++) sum = sum * 5 + got[k];
    }
    if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - begin;
    if (sum == 0x12345) out[threadIdx.x] = sum;
}

// An array of N words in each thread's local memory, written and read at places that only the arguments tell.
template <int N> __global__ void local_words(int rounds, int step, unsigned *out) {
    unsigned words[N];
    for (int i = 0; i < N; i++) words[i] = threadIdx.x + i;
    unsigned at = step & (N - 1), sum = 0;
    for (int round = 0; round < rounds; round++) {
        sum ^= words[at];
        words[(at + step) & (N - 1)] = sum;
        at = (at + 2 * step + 1) & (N - 1);
    }
    if (sum == 0x12345) out[threadIdx.x] = sum;
}

// Copies of `nbytes` from global to shared memory by TMA, STAGES under way; one thread of a block asks for them.
constexpr int STAGES = 4;
extern "C" __global__ void bulk_copies(const char *data, unsigned nbytes, unsigned mask, int rounds, unsigned *out) {
    extern __shared__ __align__(128) char stages[];
    __shared__ unsigned long long full[STAGES];
    const unsigned at = (unsigned)__cvta_generic_to_shared(stages), bar = (unsigned)__cvta_generic_to_shared(full);
    if (threadIdx.x != 0) return;
    for (int k = 0; k < STAGES; k++) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar + 8 * k));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (int round = 0; round < rounds + STAGES; round++) {
        const int stage = round % STAGES;
        if (round >= STAGES) {
            asm volatile("{\n.reg .pred p;\nwait: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra wait;\n}" ::"r"(
                             bar + 8 * stage),
                         "r"((round / STAGES - 1) & 1)
                         : "memory");
        }
        if (round < rounds) {
            const size_t place = size_t((spread(blockIdx.x * 65536 + round) >> 8 & mask)) * nbytes;
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar + 8 * stage), "r"(nbytes) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                             at + stage * nbytes),
                         "l"(data + place), "r"(nbytes), "r"(bar + 8 * stage)
                         : "memory");
        }
    }
    out[blockIdx.x] = stages[0];
}

// Cycles of a chain of loads that hit the L1, each lane's word `stride` words from its neighbour's; all words are 0.
extern "C" __global__ void lanes_chase(const int *data, int stride, int rounds, long long *cycles, int *out) {
    int at = threadIdx.x % 32 * stride + threadIdx.x / 32;
    for (int k = 0; k < 2; k++) at += data[at];
    __syncthreads();
    const long long start = clock64();
#pragma unroll 8
    for (int i = 0; i < rounds; i++) at += data[at];
    const long long end = clock64();
    if (at == -1) *out = at;
    if (threadIdx.x == 0) cycles[blockIdx.x] = end - start;
}

// Blocks and barriers: how fast blocks start and follow each other, what a barrier costs, how uneven blocks and warps are
// dealt out, and the clock under load.

extern "C" __global__ void nothing(int *out) {
    if (out != nullptr) *out = 1;
}

// Cycles of `rounds` barriers, eight at a time; between two barriers, with `step`, a word goes through shared memory.
extern "C" __global__ void barriers(int rounds, int step, long long *cycles, int *out) {
    __shared__ int words[1024];
    int x = threadIdx.x;
    words[threadIdx.x] = x;
    __syncthreads();
    const long long start = clock64();
    if (step) {
#pragma unroll 4
        for (int round = 0; round < rounds; round += 2) {
            words[threadIdx.x] = x;
            __syncthreads();
            x += words[(threadIdx.x + 32) % blockDim.x];
            __syncthreads();
        }
    } else {
#pragma unroll 8
        for (int round = 0; round < rounds; round++) __syncthreads();
    }
    const long long end = clock64();
    if (x == -1) *out = x;
    if (threadIdx.x == 0) cycles[blockIdx.x] = end - start;
}

__device__ float busy(int steps, float x) {
    for (int i = 0; i < steps; i++) {
#pragma unroll
        for (int k = 0; k < 16; k++) x = fmaf(x, 0.999f, 0.5f);
    }
    return x;
}

// Warp w of block b makes steps[(b * warps + w) % n] steps of 16 dependent multiply-adds.
extern "C" __global__ void uneven(const int *steps, int n, float *out) {
    const int warps = blockDim.x / 32, number = blockIdx.x * warps + threadIdx.x / 32;
    const float x = busy(steps[number % n], threadIdx.x);
    if (x == -1.0f) *out = x;
}

// When each warp starts and ends, and on which SM; between both `steps` times 16 dependent multiply-adds.
extern "C" __global__ void gaps(int steps, long long *times, unsigned *sm, float *out) {
    const long long start = clock64();
    const float x = busy(steps, threadIdx.x);
    if (x == -1.0f) *out = x;
    const int warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) {
        asm volatile("mov.u32 %0, %%smid;" : "=r"(sm[warp]));
        times[2 * warp] = start;
        times[2 * warp + 1] = clock64();
    }
}

// Clocks and nanoseconds of `steps` rounds of independent multiply-adds.
extern "C" __global__ void clock_under_load(int steps, unsigned long long *spent, float *out) {
    unsigned long long clocks, time, later_clocks, later;
    asm volatile("mov.u64 %0, %%clock64;\n\tmov.u64 %1, %%globaltimer;" : "=l"(clocks), "=l"(time)::"memory");
    float sum[8];
    for (int i = 0; i < 8; i++) sum[i] = threadIdx.x + i;
    for (int step = 0; step < steps; step++) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
#pragma unroll
            for (int i = 0; i < 8; i++) sum[i] = fmaf(sum[i], 0.9999f, 0.37f);
        }
    }
    asm volatile("mov.u64 %0, %%clock64;\n\tmov.u64 %1, %%globaltimer;" : "=l"(later_clocks), "=l"(later)::"memory");
    float total = 0;
    for (int i = 0; i < 8; i++) total += sum[i];
    if (total == -1.0f) *out = total;
    if (threadIdx.x == 0) {
        spent[2 * blockIdx.x] = later_clocks - clocks;
        spent[2 * blockIdx.x + 1] = later - time;
    }
}

// The same with mma.sync m16n8k16 on random factors.
extern "C" __global__ void clock_under_mma(int steps, const unsigned *random, unsigned long long *spent, float *out) {
    unsigned long long clocks, time, later_clocks, later;
    unsigned a[4], b[2];
    for (int i = 0; i < 4; i++) a[i] = random[threadIdx.x * 6 + i];
    for (int i = 0; i < 2; i++) b[i] = random[threadIdx.x * 6 + 4 + i];
    float c[8][4] = {};
    asm volatile("mov.u64 %0, %%clock64;\n\tmov.u64 %1, %%globaltimer;" : "=l"(clocks), "=l"(time)::"memory");
    for (int step = 0; step < steps; step++) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                         "{%0,%1,%2,%3};"
                         : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
        }
    }
    asm volatile("mov.u64 %0, %%clock64;\n\tmov.u64 %1, %%globaltimer;" : "=l"(later_clocks), "=l"(later)::"memory");
    float total = 0;
    for (int i = 0; i < 8; i++) total += c[i][0] + c[i][1] + c[i][2] + c[i][3];
    if (total == -1.0f) *out = total;
    if (threadIdx.x == 0) {
        spent[2 * blockIdx.x] = later_clocks - clocks;
        spent[2 * blockIdx.x + 1] = later - time;
    }
}

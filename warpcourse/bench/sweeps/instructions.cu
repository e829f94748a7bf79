// Cycles of an instruction: one after the other in one warp (latency), and from many warps (what a multiprocessor does).
//
// `chain_NAME<1>` for a block of 32 threads, `chain_NAME<4>` with four independent chains for one of 1024. Both write
// the cycles of ROUNDS * CHAINS * LENGTH instructions of each warp.

constexpr int LENGTH = 32, ROUNDS = 32;

template <typename Step, typename T, int CHAINS> __device__ void chains(T first, long long *cycles, T *out) {
    const T other = first + first;
    T x[CHAINS];
    for (int c = 0; c < CHAINS; c++) x[c] = first + T(threadIdx.x + c);
    __syncthreads();
    const long long start = clock64();
    for (int round = 0; round < ROUNDS; round++) {
#pragma unroll
        for (int k = 0; k < LENGTH; k++) {
#pragma unroll
            for (int c = 0; c < CHAINS; c++) Step::run(x[c], first, other);
        }
    }
    __syncthreads();
    const long long end = clock64();
    T sum = 0;
    for (int c = 0; c < CHAINS; c++) sum += x[c];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    if (threadIdx.x == 0) cycles[blockIdx.x] = end - start;
}

#define STEP(name, type, ...)                                                                                          \
    struct name##_step {                                                                                               \
        static __device__ __forceinline__ void run(type &x, type y, type z) { asm volatile(__VA_ARGS__); }                     \
    };                                                                                                                 \
    template <int CHAINS> __global__ void chain_##name(type first, long long *cycles, type *out) {                     \
        chains<name##_step, type, CHAINS>(first, cycles, out);                                                         \
    }

STEP(ffma, float, "fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(y))
STEP(fadd, float, "add.rn.f32 %0, %0, %1;" : "+f"(x) : "f"(y))
STEP(fmnmx, float, "max.f32 %0, %0, %1; min.f32 %0, %0, %2;" : "+f"(x) : "f"(y), "f"(z))
STEP(imad, unsigned, "mad.lo.u32 %0, %0, %1, %1;" : "+r"(x) : "r"(y))
STEP(imad_hi, unsigned, "mad.hi.u32 %0, %0, %1, %1;" : "+r"(x) : "r"(y))
STEP(iadd_lop, unsigned, "add.u32 %0, %0, %1; xor.b32 %0, %0, %2;" : "+r"(x) : "r"(y), "r"(z))
STEP(shf, unsigned, "shf.l.wrap.b32 %0, %0, %1, %1;" : "+r"(x) : "r"(y))
STEP(prmt, unsigned, "prmt.b32 %0, %0, %1, %1;" : "+r"(x) : "r"(y))
STEP(select, unsigned, "{.reg .pred p; setp.lt.u32 p, %0, %1; selp.u32 %0, %1, 7, p;}" : "+r"(x) : "r"(y))
STEP(popc, unsigned, "popc.b32 %0, %0;" : "+r"(x) : "r"(y))
STEP(flo, unsigned, "bfind.u32 %0, %0;" : "+r"(x) : "r"(y))
STEP(brev, unsigned, "brev.b32 %0, %0;" : "+r"(x) : "r"(y))
STEP(ex2, float, "ex2.approx.ftz.f32 %0, %0;" : "+f"(x) : "f"(y))
STEP(rsqrt, float, "rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x) : "f"(y))
STEP(sin, float, "sin.approx.ftz.f32 %0, %0;" : "+f"(x) : "f"(y))
STEP(tanh, float, "tanh.approx.f32 %0, %0;" : "+f"(x) : "f"(y))
STEP(i2f_f2i, unsigned, "{.reg .f32 f; cvt.rn.f32.s32 f, %0; cvt.rzi.s32.f32 %0, f;}" : "+r"(x) : "r"(y))
STEP(f2f_half, float, "{.reg .b16 h; cvt.rn.f16.f32 h, %0; cvt.f32.f16 %0, h;}" : "+f"(x) : "f"(y))
STEP(hfma2, unsigned, "fma.rn.f16x2 %0, %0, %1, %1;" : "+r"(x) : "r"(y))
STEP(dfma, double, "fma.rn.f64 %0, %0, %1, %1;" : "+d"(x) : "d"(y))
STEP(dadd, double, "add.rn.f64 %0, %0, %1;" : "+d"(x) : "d"(y))
STEP(shfl, unsigned, "shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(x) : "r"(y))
STEP(shfl_index, unsigned, "shfl.sync.idx.b32 %0, %0, %0, 31, -1;" : "+r"(x) : "r"(y))
STEP(ballot, unsigned, "{.reg .pred p; setp.lt.u32 p, %0, %1; vote.sync.ballot.b32 %0, p, -1;}" : "+r"(x) : "r"(y))
STEP(match, unsigned, "match.any.sync.b32 %0, %0, -1;" : "+r"(x) : "r"(y))
STEP(redux, unsigned, "redux.sync.add.u32 %0, %0, -1;" : "+r"(x) : "r"(y))

// -- memory close by: the word that was read says where the next one is ---------------------------------------------

constexpr int WORDS = 2048;

// `used`: of the words of a thread's load, 1, 2 or 4 at once. All lanes of a warp the same word, so no conflicts.
template <int WIDTH, int CHAINS> __global__ void chain_lds(int apart, long long *cycles, unsigned *out) {
    __shared__ __align__(16) unsigned words[WORDS];
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) words[i] = 0;
    __syncthreads();
    const unsigned base = (unsigned)__cvta_generic_to_shared(words);
    unsigned at[CHAINS];
    for (int c = 0; c < CHAINS; c++) at[c] = base + (threadIdx.x % 32 * apart + c * 128) % (WORDS - 4) * 4 / (4 * WIDTH) * (4 * WIDTH);
    __syncthreads();
    const long long start = clock64();
    for (int round = 0; round < ROUNDS; round++) {
#pragma unroll
        for (int k = 0; k < LENGTH; k++) {
#pragma unroll
            for (int c = 0; c < CHAINS; c++) {
                unsigned x = 0, y = 0, z = 0, w = 0;
                if (WIDTH == 1) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at[c]) : "memory");
                if (WIDTH == 2) asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "r"(at[c]) : "memory");
                if (WIDTH == 4)
                    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "r"(at[c]) : "memory");
                at[c] += x;
            }
        }
    }
    __syncthreads();
    const long long end = clock64();
    unsigned sum = 0;
    for (int c = 0; c < CHAINS; c++) sum += at[c];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    if (threadIdx.x == 0) cycles[blockIdx.x] = end - start;
}

// `global`: an atomic on global memory (the L2), else on shared memory; each gives the place of the next.
extern "C" __global__ void chain_atomic(unsigned *data, int global, int rounds, long long *cycles, unsigned *out) {
    __shared__ unsigned words[32];
    words[threadIdx.x % 32] = 0;
    __syncthreads();
    unsigned x = threadIdx.x;
    const long long start = clock64();
    for (int round = 0; round < rounds; round++) x += global ? atomicExch(data + x, 0u) : atomicExch(words + x, 0u);
    const long long end = clock64();
    out[threadIdx.x] = x;
    if (threadIdx.x == 0) cycles[blockIdx.x] = end - start;
}

// `constant` memory by an index that only the word before tells.
__constant__ unsigned constants[64];
extern "C" __global__ void chain_constant(int rounds, long long *cycles, unsigned *out) {
    unsigned x = 0;
    const long long start = clock64();
    for (int round = 0; round < rounds; round++) x = constants[x];
    const long long end = clock64();
    out[threadIdx.x] = x;
    if (threadIdx.x == 0) cycles[blockIdx.x] = end - start;
}

// -- branches ---------------------------------------------------------------------------------------------------------

// A loop of K dependent multiply-adds. WAYS: into how many parts a warp splits in each pass, each with K of its own.
template <int K, int WAYS> __global__ void loops(int rounds, float first, long long *cycles, unsigned *out) {
    float x = first + threadIdx.x;
    const unsigned way = threadIdx.x % 32 * WAYS / 32;
    __syncthreads();
    const long long start = clock64();
#pragma unroll 1
    for (int round = 0; round < rounds; round++) {
        if (WAYS == 1) {
#pragma unroll
            for (int k = 0; k < K; k++) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(first));
        } else {
#pragma unroll
            for (int w = 0; w < WAYS; w++) {
                if (way == w) {
#pragma unroll
                    for (int k = 0; k < K; k++) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(first));
                }
            }
        }
    }
    __syncthreads();
    const long long end = clock64();
    out[blockIdx.x * blockDim.x + threadIdx.x] = __float_as_uint(x);
    if (threadIdx.x == 0) cycles[blockIdx.x] = end - start;
}

// -- the inner loop of a matrix product: words from shared memory into a square of products ---------------------------

// 256 threads; a warp's lanes read 4 and 8 different places of a row, as 4 × 8 tiles of SIDE × SIDE products do.
// VECTOR: words of a load. BARRIERS: after every 8 rows. Writes the cycles of `rounds` times 8 rows.
template <int SIDE, int VECTOR, int BARRIERS>
__global__ void tile(int rounds, long long *cycles, unsigned *out) {
    __shared__ __align__(16) float a[8][132], b[8][132];
    for (int i = threadIdx.x; i < 8 * 132; i += blockDim.x) (&a[0][0])[i] = (&b[0][0])[i] = threadIdx.x * 1e-3f;
    __syncthreads();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = (warp / 2 * 4 + lane / 8) * SIDE % 128, column = (warp % 2 * 8 + lane % 8) * SIDE % 128;
    float sum[SIDE][SIDE] = {};
    const long long start = clock64();
    for (int round = 0; round < rounds; round++) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            float x[SIDE], y[SIDE];
            if (VECTOR == 4) {
#pragma unroll
                for (int i = 0; i < SIDE; i += 4) {
                    *reinterpret_cast<float4 *>(x + i) = *reinterpret_cast<const float4 *>(&a[k][row + i]);
                    *reinterpret_cast<float4 *>(y + i) = *reinterpret_cast<const float4 *>(&b[k][column + i]);
                }
            } else {
#pragma unroll
                for (int i = 0; i < SIDE; i++) x[i] = ((volatile float *)a[k])[row + i], y[i] = ((volatile float *)b[k])[column + i];
            }
#pragma unroll
            for (int i = 0; i < SIDE; i++) {
#pragma unroll
                for (int j = 0; j < SIDE; j++) sum[i][j] += x[i] * y[j];
            }
        }
        if (BARRIERS > 0) __syncthreads();
        if (BARRIERS > 1) {
            a[threadIdx.x / 32][lane] = sum[0][0];
            __syncthreads();
        }
        asm volatile("" ::: "memory");
    }
    const long long end = clock64();
    float total = 0;
    for (int i = 0; i < SIDE; i++) {
        for (int j = 0; j < SIDE; j++) total += sum[i][j];
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = __float_as_uint(total);
    if (threadIdx.x == 0) cycles[blockIdx.x] = end - start;
}

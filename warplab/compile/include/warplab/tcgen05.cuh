// Products that one thread issues, with sums in tensor memory: compute capability 10.0, target sm_100a. Barriers and
// layouts are those of hopper.cuh. PTX ISA: "TensorCore 5th Generation Family Instructions".
#pragma once
#include <warplab/hopper.cuh>

// A warp takes COLUMNS (32, 64, 128, 256 or 512) of tensor memory. The address of the first goes to shared memory.
template <int COLUMNS>
__device__ __forceinline__ void take_columns(unsigned *given) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(given)),
                 "n"(COLUMNS)
                 : "memory");
}

// A warp gives them back, once nobody uses them any more.
template <int COLUMNS>
__device__ __forceinline__ void give_columns(unsigned columns) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(columns), "n"(COLUMNS) : "memory");
}

// Sums (M × N, float32) at `sums` = A · B + `add` · sums, 16 of k, float16. `a`, `b`: as `k_major` describes them. Issued
// by one thread; over when a barrier of `when_multiplied` is.
template <int M, int N>
__device__ __forceinline__ void multiply(unsigned sums, unsigned long long a, unsigned long long b, bool add) {
    constexpr unsigned FORM = 1 << 4 | N / 8 << 17 | M / 16 << 24;
    constexpr unsigned long long BLACKWELL = 1ull << 46;
    asm volatile(
        "{\n.reg .pred adds;\nsetp.ne.b32 adds, %4, 0;\n"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, adds;\n}" ::"r"(sums),
        "l"(a | BLACKWELL), "l"(b | BLACKWELL), "n"(FORM), "r"(int(add))
        : "memory");
}

// One arrival at `barrier` when all that the thread has issued is over.
__device__ __forceinline__ void when_multiplied(unsigned barrier) {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier) : "memory");
}

// The sum of row threadIdx.x and of a column, M = 128 and as many threads. All of a warp load together.
__device__ __forceinline__ float load_sum(unsigned sums, int column) {
    float sum;
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    const unsigned from = sums + (threadIdx.x / 32 << 21) + column;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=f"(sum) : "r"(from) : "memory");
    asm volatile("tcgen05.wait::ld.sync.aligned;" : "+f"(sum)::"memory");
    return sum;
}

// What a block of 128 threads needs for M × 64 times 64 × N in float16, `b` being Bᵀ: both tiles, swizzled as TMA leaves
// them, a barrier for `when_multiplied`, and N columns of tensor memory, the first of them at `sums`.
template <int M, int N>
struct Product {
    alignas(1024) half a_tile[64 * M], b_tile[64 * N];
    alignas(8) unsigned long long barrier;
    unsigned sums;

    __device__ unsigned left() { return shared_address(a_tile); }
    __device__ unsigned right() { return shared_address(b_tile); }
    __device__ unsigned done() { return shared_address(&barrier); }

    static __device__ void fill(half *to, const half *from, int rows) {
        for (int i = threadIdx.x; i < 64 * rows; i += blockDim.x) to[i ^ i / 64 % 8 * 8] = from[i];
    }

    __device__ void begin(const half *a, const half *b) {
        fill(a_tile, a, M);
        fill(b_tile, b, N);
        if (threadIdx.x < 32) take_columns<N>(&sums);
        if (threadIdx.x == 0) barrier_init(done(), 1);
        fence_for_tma();
        __syncthreads();
    }

    __device__ void end() {
        __syncthreads();
        if (threadIdx.x < 32) give_columns<N>(sums);
    }
};

// What labs' kernels for Hopper share: barriers in shared memory, copies by TMA, wgmma. Compute capability 9.0, target
// sm_90a. Addresses are those of shared memory, 32 bits. PTX ISA: "mbarrier", "cp.async.bulk.tensor", "Asynchronous
// Warpgroup Level Matrix Instructions". The maps come from warpcourse/bench/hopper.py.
#pragma once
#include <warplab/shared_layout.cuh>

// CUtensorMap of the driver: 128 bytes that say where a tensor lies and which box of it is copied.
struct alignas(128) TensorMap {
    unsigned char bytes[128];
};

// -- blocks, warpgroups and their registers ---------------------------------------------------------------------------

// All threads of the cluster meet.
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// The 128 threads of a warpgroup meet at barrier `number`, 1 to 15; __syncthreads() has 0.
__device__ __forceinline__ void group_sync(int number) {
    asm volatile("barrier.sync.aligned %0, 128;" ::"r"(number) : "memory");
}

// The same of THREADS threads, whole warps.
template <int THREADS>
__device__ __forceinline__ void threads_sync(int number) {
    asm volatile("barrier.sync.aligned %0, %1;" ::"r"(number), "n"(THREADS) : "memory");
}

// Says to THREADS threads at barrier `number`, these among them, that these have come, and does not wait.
template <int THREADS>
__device__ __forceinline__ void threads_arrive(int number) {
    asm volatile("barrier.arrive.aligned %0, %1;" ::"r"(number), "n"(THREADS) : "memory");
}

// A kernel launched with `early` may start from here on, once all blocks have come here or ended.
__device__ __forceinline__ void let_next_kernel_start() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Waits until the kernel before has ended and all can see what it wrote. For kernels launched with `early`.
__device__ __forceinline__ void wait_for_kernel_before() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

// A warpgroup goes on with fewer registers per thread, or with more.
template <int REGISTERS>
__device__ __forceinline__ void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS>
__device__ __forceinline__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// -- barriers: 8 bytes each; a phase ends when `count` arrivals and all announced bytes have come ---------------------

__device__ __forceinline__ void barrier_init(unsigned barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

// Makes what barrier_init wrote visible to the other blocks of the cluster and to TMA.
__device__ __forceinline__ void fence_barrier_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// One arrival, and bytes that copies will bring before the phase can end.
__device__ __forceinline__ void barrier_expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// One arrival at the barrier that lies at this address in block `rank` of the cluster. It orders nothing beyond the
// block (release.cluster would wait for all memory of the GPU): what has been read is read.
__device__ __forceinline__ void barrier_arrive(unsigned barrier, unsigned rank) {
    asm volatile(
        "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
        "r"(rank)
        : "memory");
}

// The same at a barrier of the block itself.
__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Waits for the end of the phase of this parity: 0 for the first, 1 for the second, and so on. Of a new barrier the
// phase before the first counts as ended.
__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
    unsigned done;
    do {
        asm volatile(
            "{\n.reg .pred done;\nmbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
            "selp.b32 %0, 1, 0, done;\n}"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
    } while (!done);
}

// -- shared memory of another block of the cluster --------------------------------------------------------------------

// 16 bytes to this address in block `rank`.
__device__ __forceinline__ void store_there(unsigned to, unsigned rank, float4 v) {
    asm volatile(
        "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
        "st.shared::cluster.v4.f32 [there], {%2, %3, %4, %5};\n}" ::"r"(to),
        "r"(rank), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
        : "memory");
}

// -- TMA: one thread copies a box, 128 bytes per row ------------------------------------------------------------------

// Fetches a map before it is needed.
__device__ __forceinline__ void prefetch_map(const TensorMap &map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

__device__ __forceinline__ void load_box(unsigned to, const TensorMap &map, int column, int row, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            to),
        "l"(&map), "r"(column), "r"(row), "r"(barrier)
        : "memory");
}

// The same of a tensor of three axes; x is along the lines.
__device__ __forceinline__ void load_box(unsigned to, const TensorMap &map, int x, int y, int z, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::
            "r"(to),
        "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier)
        : "memory");
}

// A line for each of the map's pixels of an NHWC tensor, from (image, row, column) on through the map's window of
// positions, then the next image's; what is read lies (down, right) further. Zeros outside the tensor.
__device__ __forceinline__ void load_pixels(unsigned to, const TensorMap &map, int channel, int column, int row,
                                            int image, unsigned short right, unsigned short down, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(to),
        "l"(&map), "r"(channel), "r"(column), "r"(row), "r"(image), "r"(barrier), "h"(right), "h"(down)
        : "memory");
}

// The same into every block of the cluster whose bit is set in `blocks`, at the same place, with word to the barrier at
// the same place.
__device__ __forceinline__ void load_box_for(unsigned short blocks, unsigned to, const TensorMap &map, int column,
                                             int row, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%2, %3}], [%4], %5;" ::"r"(to),
        "l"(&map), "r"(column), "r"(row), "r"(barrier), "h"(blocks)
        : "memory");
}

__device__ __forceinline__ void load_box_for(unsigned short blocks, unsigned to, const TensorMap &map, int x, int y,
                                             int z, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
        "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier), "h"(blocks)
        : "memory");
}

__device__ __forceinline__ void load_pixels_for(unsigned short blocks, unsigned to, const TensorMap &map, int channel,
                                                int column, int row, int image, unsigned short right,
                                                unsigned short down, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%2, %3, %4, %5}], [%6], {%7, %8}, %9;" ::"r"(to),
        "l"(&map), "r"(channel), "r"(column), "r"(row), "r"(image), "r"(barrier), "h"(right), "h"(down), "h"(blocks)
        : "memory");
}

__device__ __forceinline__ void store_box(const TensorMap &map, unsigned from, int column, int row) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(column),
                 "r"(row), "r"(from)
                 : "memory");
}

// The same of a tensor of three axes; x is along the lines.
__device__ __forceinline__ void store_box(const TensorMap &map, unsigned from, int x, int y, int z) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map), "r"(x),
                 "r"(y), "r"(z), "r"(from)
                 : "memory");
}

// Lines to an NHWC tensor's pixels from (image, row, column) on, as load_pixels takes them.
__device__ __forceinline__ void store_pixels(const TensorMap &map, unsigned from, int channel, int column, int row,
                                             int image) {
    asm volatile(
        "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(
            &map),
        "r"(channel), "r"(column), "r"(row), "r"(image), "r"(from)
        : "memory");
}

// Ends a group of stores, which may be empty.
__device__ __forceinline__ void stores_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until all but the latest N groups of stores have read shared memory.
template <int N>
__device__ __forceinline__ void stores_have_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

// Ordinary stores to shared memory before it come before what TMA reads after it.
__device__ __forceinline__ void fence_for_tma() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// -- wgmma: four warps multiply 64 × 16 by 16 × N elements that lie in shared memory ----------------------------------

// Before the first wgmma that uses registers written otherwise.
__device__ __forceinline__ void wgmma_fence() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits for all but the latest N groups.
template <int N>
__device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

#define SUM8(i)                                                                                               \
    "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), "+f"(sum[i + 5]), \
        "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define SUM32(i) SUM8(i), SUM8(i + 8), SUM8(i + 16), SUM8(i + 24)

#define LIST8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define LIST16 LIST8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define LIST24 LIST16 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define LIST32 LIST16 ", "                                                                    \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LIST48 LIST32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define LIST64 LIST32 ", " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LIST96                                                                                   \
    LIST64 ", "                                                                                  \
           "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "    \
           "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define LIST128                                                                                  \
    LIST96 ", "                                                                                  \
           "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, "    \
           "%110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, " \
           "%124, %125, %126, %127"

// Which index of an operand runs along the lines: that of the sum, or the other one. See `k_major` and `mn_major`.
constexpr int K_MAJOR = 0, MN_MAJOR = 1;

// What is multiplied: 16 of k at a time, of float8 32.
constexpr int FLOAT16 = 0, BFLOAT16 = 1, E4M3 = 2;
template <typename T>
constexpr int FACTORS_OF = FLOAT16;  // what holds numbers of this type
struct __nv_bfloat16;
template <>
constexpr int FACTORS_OF<__nv_bfloat16> = BFLOAT16;

#define WGMMA(SHAPE, ENDING, LIST, A, B, ADD, MAJORS, ...)                                               \
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" ADD ", 0;\nwgmma.mma_async.sync.aligned." SHAPE \
                 ENDING " {" LIST "}, %" A ", %" B ", add, 1, 1" MAJORS ";\n}" __VA_ARGS__)

// sum = a · b + (add ? sum : 0), for N of 16, 32, 48, 64, 96, 128, 192 or 256. A thread holds of row 16 · (warp % 4) + lane / 4, and of
// the row eight below, columns 8j + lane % 4 · 2 and the next, as sum[4j] to sum[4j + 3].
#define WGMMA_OF(COUNT, N, LIST, A, B, ADD, A_MAJOR_AT, B_MAJOR_AT, ...)                                              \
    template <int A_MAJOR, int B_MAJOR, int FACTORS = FLOAT16>                                                      \
    __device__ __forceinline__ void wgmma(float (&sum)[COUNT], unsigned long long a, unsigned long long b, int add) { \
        if constexpr (FACTORS == E4M3) {                                                                            \
            static_assert(A_MAJOR == K_MAJOR && B_MAJOR == K_MAJOR, "8 bits only along the sum's index");           \
            WGMMA("m64n" N "k32", ".f32.e4m3.e4m3", LIST, A, B, ADD, "",                                            \
                  : __VA_ARGS__ : "l"(a), "l"(b), "r"(add));                                                        \
        } else if constexpr (FACTORS == BFLOAT16) {                                                                 \
            WGMMA("m64n" N "k16", ".f32.bf16.bf16", LIST, A, B, ADD, ", %" A_MAJOR_AT ", %" B_MAJOR_AT,             \
                  : __VA_ARGS__ : "l"(a), "l"(b), "r"(add), "n"(A_MAJOR), "n"(B_MAJOR));                            \
        } else {                                                                                                    \
            WGMMA("m64n" N "k16", ".f32.f16.f16", LIST, A, B, ADD, ", %" A_MAJOR_AT ", %" B_MAJOR_AT,               \
                  : __VA_ARGS__ : "l"(a), "l"(b), "r"(add), "n"(A_MAJOR), "n"(B_MAJOR));                            \
        }                                                                                                           \
    }

WGMMA_OF(8, "16", LIST8, "8", "9", "10", "11", "12", SUM8(0))
WGMMA_OF(16, "32", LIST16, "16", "17", "18", "19", "20", SUM8(0), SUM8(8))
WGMMA_OF(24, "48", LIST24, "24", "25", "26", "27", "28", SUM8(0), SUM8(8), SUM8(16))
WGMMA_OF(32, "64", LIST32, "32", "33", "34", "35", "36", SUM32(0))
WGMMA_OF(48, "96", LIST48, "48", "49", "50", "51", "52", SUM32(0), SUM8(32), SUM8(40))
WGMMA_OF(64, "128", LIST64, "64", "65", "66", "67", "68", SUM32(0), SUM32(32))
WGMMA_OF(96, "192", LIST96, "96", "97", "98", "99", "100", SUM32(0), SUM32(32), SUM32(64))
WGMMA_OF(128, "256", LIST128, "128", "129", "130", "131", "132", SUM32(0), SUM32(32), SUM32(64), SUM32(96))

// After the last wgmma_wait<0>: the compiler, which does not know that sums come late, uses them only from here on.
template <int SUMS>
__device__ __forceinline__ void settle(float (&sum)[SUMS]) {
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        asm volatile("" : "+f"(sum[i])::"memory");
    }
}

// wgmma with `a`, 16 bits, in registers, that hold it as those of mma.sync do: of row 16 · (warp % 4) + lane / 4, and of
// the row eight below, columns lane % 4 · 2 and the next; then both eight columns on. They stay until the product is over.
#define WGMMA_HELD(N, TYPE, LIST, A, B, ADD, MAJOR_AT, ...)                                                   \
    asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" ADD ", 0;\nwgmma.mma_async.sync.aligned.m64n" N \
                 "k16.f32." TYPE "." TYPE " {" LIST "}, {" A "}, %" B ", add, 1, 1, %" MAJOR_AT ";\n}"       \
                 : __VA_ARGS__                                                                                \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(B_MAJOR))
#define WGMMA_HELD_OF(COUNT, N, LIST, A, B, ADD, MAJOR_AT, ...)                                                      \
    template <int B_MAJOR, int FACTORS = FLOAT16>                                                                    \
    __device__ __forceinline__ void wgmma_held(float (&sum)[COUNT], const unsigned (&a)[4], unsigned long long b,    \
                                               int add) {                                                            \
        if constexpr (FACTORS == BFLOAT16) {                                                                         \
            WGMMA_HELD(N, "bf16", LIST, A, B, ADD, MAJOR_AT, __VA_ARGS__);                                           \
        } else {                                                                                                     \
            WGMMA_HELD(N, "f16", LIST, A, B, ADD, MAJOR_AT, __VA_ARGS__);                                            \
        }                                                                                                            \
    }

WGMMA_HELD_OF(32, "64", LIST32, "%32, %33, %34, %35", "36", "37", "38", SUM32(0))
WGMMA_HELD_OF(64, "128", LIST64, "%64, %65, %66, %67", "68", "69", "70", SUM32(0), SUM32(32))
WGMMA_HELD_OF(128, "256", LIST128, "%128, %129, %130, %131", "132", "133", "134", SUM32(0), SUM32(32), SUM32(64),
              SUM32(96))

// wgmma of signed 8-bit whole numbers, 32 of k at a time, both operands along it; sums are exact.
#define WHOLE8(i)                                                                                             \
    "+r"(sum[i]), "+r"(sum[i + 1]), "+r"(sum[i + 2]), "+r"(sum[i + 3]), "+r"(sum[i + 4]), "+r"(sum[i + 5]), \
        "+r"(sum[i + 6]), "+r"(sum[i + 7])
#define WHOLE32(i) WHOLE8(i), WHOLE8(i + 8), WHOLE8(i + 16), WHOLE8(i + 24)
#define WGMMA_WHOLE_OF(COUNT, N, LIST, A, B, ADD, ...)                                                              \
    template <int A_MAJOR, int B_MAJOR>                                                                             \
    __device__ __forceinline__ void wgmma(int (&sum)[COUNT], unsigned long long a, unsigned long long b, int add) { \
        static_assert(A_MAJOR == K_MAJOR && B_MAJOR == K_MAJOR, "8 bits only along the sum's index");               \
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %" ADD ", 0;\nwgmma.mma_async.sync.aligned.m64n" N      \
                     "k32.s32.s8.s8 {" LIST "}, %" A ", %" B ", add;\n}"                                            \
                     : __VA_ARGS__                                                                                  \
                     : "l"(a), "l"(b), "r"(add));                                                                   \
    }

WGMMA_WHOLE_OF(16, "32", LIST16, "16", "17", "18", WHOLE8(0), WHOLE8(8))
WGMMA_WHOLE_OF(32, "64", LIST32, "32", "33", "34", WHOLE32(0))
WGMMA_WHOLE_OF(64, "128", LIST64, "64", "65", "66", WHOLE32(0), WHOLE32(32))
WGMMA_WHOLE_OF(128, "256", LIST128, "128", "129", "130", WHOLE32(0), WHOLE32(32), WHOLE32(64), WHOLE32(96))

template <int SUMS>
__device__ __forceinline__ void settle(int (&sum)[SUMS]) {
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        asm volatile("" : "+r"(sum[i])::"memory");
    }
}

#undef WGMMA_WHOLE_OF
#undef WHOLE32
#undef WHOLE8
#undef WGMMA_HELD_OF
#undef WGMMA_HELD
#undef WGMMA_OF
#undef WGMMA
#undef LIST128
#undef LIST96
#undef LIST64
#undef LIST32
#undef LIST16
#undef LIST8
#undef SUM32
#undef SUM8

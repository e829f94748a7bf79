// What steps 5 and 6 and peak.cu share: barriers in shared memory, copies by TMA, wgmma. Compute capability 9.0, target
// sm_90a. Addresses are those of shared memory, 32 bits. PTX ISA: "mbarrier", "cp.async.bulk.tensor", "Asynchronous
// Warpgroup Level Matrix Instructions".
#pragma once
#include <cuda_fp16.h>

// CUtensorMap of the driver: 128 bytes that say where a matrix lies and which box of it is copied.
struct alignas(128) TensorMap {
    unsigned char bytes[128];
};

constexpr int LINE_BYTES = 128;  // rows of a box; the 16-byte chunks of row r are exchanged by chunk ^ r % 8

__device__ __forceinline__ unsigned shared_address(const void *pointer) {
    return unsigned(__cvta_generic_to_shared(pointer));
}

// -- barriers: 8 bytes each; a phase ends when `count` arrivals and all announced bytes have come ----------------------

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

// One arrival at the barrier that lies at this address in block `rank` of the cluster. It orders nothing beyond the block
// (release.cluster would wait for all memory of the GPU): what has been read is read.
__device__ __forceinline__ void barrier_arrive(unsigned barrier, unsigned rank) {
    asm volatile(
        "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
        "r"(rank)
        : "memory");
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

// -- TMA: one thread copies a box, 128 bytes a row --------------------------------------------------------------------

__device__ __forceinline__ void load_box(unsigned to, const TensorMap &map, int column, int row, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            to),
        "l"(&map), "r"(column), "r"(row), "r"(barrier)
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

__device__ __forceinline__ void store_box(const TensorMap &map, unsigned from, int column, int row) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(column),
                 "r"(row), "r"(from)
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

// Two neighbouring results of row `row` of a box of C, from column `column`, to where the swizzle puts them. The last
// argument only says the type.
__device__ __forceinline__ void keep2(unsigned box, int row, int column, float x, float y, float) {
    const unsigned to = box + row * LINE_BYTES + ((column / 4) ^ (row % 8)) * 16 + column % 4 * 4;
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(x), "f"(y) : "memory");
}

__device__ __forceinline__ void keep2(unsigned box, int row, int column, float x, float y, half) {
    const unsigned to = box + row * LINE_BYTES + ((column / 8) ^ (row % 8)) * 16 + column % 8 * 2;
    const half2 both = __floats2half2_rn(x, y);
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(*reinterpret_cast<const unsigned *>(&both)) : "memory");
}

// Row and column of tile number `tile` of height × width tiles: down `group` rows of tiles, then the next column; at the
// end of the columns the next rows.
__device__ __forceinline__ void place_of(int tile, int height, int width, int group, int &row, int &column) {
    const int start = tile / (group * width) * group, rows = min(group, height - start);
    const int place = tile - start * width;
    row = start + place % rows;
    column = place / rows;
}

// -- wgmma: four warps multiply 64 × 16 by 16 × 256 elements that lie in shared memory ---------------------------------

// Describes an operand with swizzled lines of 128 bytes. `leading`, `stride`: bytes, see `of_a` and `of_b`.
__device__ __forceinline__ unsigned long long describe(unsigned address, unsigned leading, unsigned stride) {
    constexpr unsigned long long SWIZZLE_128 = 1ull << 62;
    return (address & 0x3FFFF) >> 4 | (unsigned long long)(leading >> 4) << 16 |
           (unsigned long long)(stride >> 4) << 32 | SWIZZLE_128;
}

// 64 × 16 of A from a box with a row of A in each line, 64 of k. From eight rows to the next: 8 lines. The leading
// offset is not used. 16 further along k: 32 bytes.
__device__ __forceinline__ unsigned long long of_a(unsigned box, int row, int depth) {
    return describe(box + row * LINE_BYTES + depth * 2, 16, 8 * LINE_BYTES);
}

// 16 × 256 of B from four boxes with a row of B in each line, 64 of its columns. From 64 columns to the next: a box. From
// eight of k to the next: 8 lines. 16 further along k: 16 lines.
__device__ __forceinline__ unsigned long long of_b(unsigned boxes, int depth, int box_rows) {
    return describe(boxes + depth * LINE_BYTES, box_rows * LINE_BYTES, 8 * LINE_BYTES);
}

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

// sum = a · b + (add ? sum : 0). A is K-major, B is N-major: its columns lie side by side ("trans-b" 1). A thread holds
// of row 16 · (warp % 4) + lane / 4, and of the row eight below, columns 8j + lane % 4 · 2 and the next, as sum[4j] to
// sum[4j + 3].
__device__ __forceinline__ void wgmma(float (&sum)[128], unsigned long long a, unsigned long long b, int add) {
    asm volatile(
        "{\n.reg .pred add;\nsetp.ne.b32 add, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129, add, 1, 1, 0, 1;\n}"
        : SUM32(0), SUM32(32), SUM32(64), SUM32(96)
        : "l"(a), "l"(b), "r"(add));
}

// After the last wgmma_wait<0>: the compiler, which does not know that sums come late, uses them only from here on.
__device__ __forceinline__ void settle(float (&sum)[128]) {
#pragma unroll
    for (int i = 0; i < 128; i++) {
        asm volatile("" : "+f"(sum[i])::"memory");
    }
}

#undef SUM32
#undef SUM8

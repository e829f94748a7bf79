// TMA without tensor maps: one thread moves a piece of memory, a multiple of 16 bytes at an address that is one, between
// global memory, which may be another GPU's, and shared memory. PTX ISA: "cp.async.bulk", "cp.reduce.async.bulk".
#pragma once
#include <warplab/hopper.cuh>

__device__ __forceinline__ void bulk_load(unsigned to, const void *from, unsigned bytes, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
        "r"(bytes), "r"(barrier)
        : "memory");
}

__device__ __forceinline__ void bulk_store(void *to, unsigned from, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
                 : "memory");
}

// Adds float32 to what lies there. PTX promises each addition to be atomic at .gpu scope only, and flushes subnormals:
// here the flags see to it that nobody else touches the piece meanwhile.
__device__ __forceinline__ void bulk_add(void *to, unsigned from, unsigned bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(from),
                 "r"(bytes)
                 : "memory");
}

// Waits until all but the latest N groups of stores are complete: written, not only read from shared memory.
template <int N>
__device__ __forceinline__ void stores_have_ended() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}

// What was written by ordinary stores, or seen by ordinary loads, comes before what TMA does in global memory.
__device__ __forceinline__ void fence_for_bulk() {
    asm volatile("fence.proxy.async;" ::: "memory");
}

// Whether the phase of this parity has ended; may wait a little.
__device__ __forceinline__ bool barrier_ended(unsigned barrier, unsigned parity) {
    unsigned done;
    asm volatile(
        "{\n.reg .pred done;\nmbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.b32 %0, 1, 0, done;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
    return done;
}

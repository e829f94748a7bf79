// A broadcast along a ring, one launch per rank: the blocks wait for a slice, store it into the next rank's buffer and
// set the next rank's flag. The same source runs on virtual devices and on GPUs.
//
// What changes from copies by the host (on_gpus.py): nobody queues messages. The kernel stays on the GPU for the whole
// broadcast, and a slice moves on as soon as it has come, so that a message costs a flag across NVLink in place of a
// copy engine's start; slices can be smaller, and the ring fills sooner.
// Reached: 350 GB/s for 1 GiB on two NVIDIA H200, 2026-11-22, whatever S from 32 to 128; in the same run copies by the
// host 396 (S = 1) to 389 (S = 16). Two GPUs have one hop, where a copy engine is faster than stores. On four
// 338, beside copies' 348 (S = 32) and NCCL's 355 to 358, 2026-11-26.
// Every block forwards its own part of every slice, 16 bytes per thread and access, and waits for nobody but the same
// block of its neighbours. All blocks of all ranks must be on the GPUs at once.
//
// A flag holds the number of the launch that set it last, so that nobody ever resets it. PTX's memory model asks for
// two fences of system scope per flag: one between the data and the flag, one between the flag seen and the data. The
// barriers let one thread speak and listen for its block.

#ifndef UNROLL
#define UNROLL 4  // loads that a thread has under way
#endif

constexpr unsigned LOOKS = 4096;  // between two looks at the host's word, each of which crosses PCIe on a GPU

// Waits for a flag of this launch. Returns false when the host has called it off, by a 1 in its word.
__device__ bool wait(const volatile unsigned *flag, unsigned launch, const volatile unsigned *abort) {
    for (unsigned looks = 1; *flag != launch; ++looks) {
        if (looks % LOOKS == 0 && *abort) return false;
    }
    __threadfence_system();
    return true;
}

__device__ void copy(uint4 *to, const uint4 *from, size_t first, size_t end) {
    size_t i = first + threadIdx.x;
    for (; i + (UNROLL - 1) * blockDim.x < end; i += UNROLL * blockDim.x) {
        uint4 values[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) values[u] = from[i + u * blockDim.x];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) to[i + u * blockDim.x] = values[u];
    }
    for (; i < end; i += blockDim.x) to[i] = from[i];
}

// `mine`: this rank's buffer. `next`: the next rank's, null at the end of the ring. Both begin at a multiple of 16 bytes.
// `arrived`: this rank's flags, one per slice and block, null at the root. `next_arrived`: the next rank's.
// `started`: this rank's flags, one per block, by which the next rank says that its launch has begun, so that its buffer
// may be written. `before_started`: those of the rank before, null at the root.
// `launch`: 1 in the first launch, then 2, and so on, the same for all ranks.
extern "C" __global__ void forward(const void *mine, void *next, size_t bytes, unsigned slices,
                                   const volatile unsigned *arrived, volatile unsigned *next_arrived,
                                   const volatile unsigned *started, volatile unsigned *before_started, unsigned launch,
                                   const volatile unsigned *abort) {
    const unsigned block = blockIdx.x, blocks = gridDim.x;
    const bool speaks = threadIdx.x == 0;
    const size_t units = bytes / 16, parts = size_t(slices) * blocks;

    bool go_on = true;
    if (speaks) {
        if (before_started) {
            __threadfence_system();  // the launch before, which read the buffer, has ended
            before_started[block] = launch;
        }
        if (next) go_on = wait(started + block, launch, abort);
    }
    if (!__syncthreads_and(go_on)) return;

    for (unsigned slice = 0; slice < slices; ++slice) {
        const size_t part = size_t(slice) * blocks + block;
        if (arrived) {
            if (speaks) go_on = wait(arrived + part, launch, abort);
            if (!__syncthreads_and(go_on)) return;
        }
        if (next) {
            copy(static_cast<uint4 *>(next), static_cast<const uint4 *>(mine), part * units / parts,
                 (part + 1) * units / parts);
            if (part == parts - 1 && threadIdx.x < bytes % 16) {  // what 16 does not divide
                const size_t at = 16 * units + threadIdx.x;
                static_cast<char *>(next)[at] = static_cast<const char *>(mine)[at];
            }
            __syncthreads();
            if (speaks) {
                __threadfence_system();
                next_arrived[part] = launch;
            }
        }
    }
}

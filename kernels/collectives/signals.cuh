// Words by which blocks on different GPUs tell each other how far they are, and waits that a host can end.
//
// A counter is written by one block and read by one block, on the same GPU or across NVLink. It only grows, from one
// launch to the next, so nobody ever resets it: 32 bits that may wrap around.
#pragma once

// Everything that this thread wrote before, or has waited for, is seen by whoever reads the new value by `look`.
__device__ __forceinline__ void tell(unsigned *there, unsigned value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(there), "r"(value) : "memory");
}

__device__ __forceinline__ unsigned look(const unsigned *here) {
    unsigned value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(here) : "memory");
    return value;
}

// Whether `have` has reached `want`, counters that wrap around.
__device__ __forceinline__ bool reached(unsigned have, unsigned want) {
    return int(have - want) >= 0;
}

// The host writes a 1 here, in its own memory, when it no longer wants to wait.
__device__ __forceinline__ bool called_off(const unsigned *abort) {
    unsigned value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(abort) : "memory");
    return value != 0;
}

constexpr unsigned LOOKS = 4096;  // between two looks at the host's word, each of which crosses PCIe

// Waits until the counter has reached `want`; false when the host called it off.
__device__ __forceinline__ bool wait_for(const unsigned *here, unsigned want, const unsigned *abort) {
    for (unsigned looks = 1; !reached(look(here), want); ++looks) {
        if (looks % LOOKS == 0 && called_off(abort)) return false;
    }
    return true;
}

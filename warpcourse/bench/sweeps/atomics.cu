// Atomics by how their addresses lie: on global memory, which the L2 does, and on shared memory.
//
// Lane l of warp w updates in round r the word  spread * (key & mask),  where
//     key = l / sharing * lane_step + w * warp_step + r * round_step,  or a mixture of l / sharing, w and r (random).
// Lanes from `lanes` on do nothing. Masks are arguments, so that the compiler cannot know which lanes meet.

struct Pattern {
    unsigned lanes, sharing, lane_step, warp_step, round_step, mask, spread, random;
};

#define PATTERN                                                                                                        \
    unsigned lanes, unsigned sharing, unsigned lane_step, unsigned warp_step, unsigned round_step, unsigned mask,      \
        unsigned spread, unsigned random

__device__ unsigned mixed(unsigned x) {
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

__device__ unsigned word(const Pattern &p, unsigned lane, unsigned warp, unsigned round) {
    const unsigned group = lane / p.sharing;
    const unsigned key = p.random ? mixed((warp * 4096 + round) * 32 + group)
                                  : group * p.lane_step + warp * p.warp_step + round * p.round_step;
    return (key & p.mask) * p.spread;
}

// -- global memory: one instruction each, as PTX names it ------------------------------------------------------------

#define GLOBAL(name, type, text, ...)                                                                                  \
    extern "C" __global__ void global_##name(PATTERN, type *data, int rounds, type value, type *out) {                 \
        const Pattern p = {lanes, sharing, lane_step, warp_step, round_step, mask, spread, random};                    \
        const unsigned lane = threadIdx.x % 32, warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;                   \
        type old = value;                                                                                              \
        if (lane < p.lanes) {                                                                                          \
            _Pragma("unroll 4") for (int round = 0; round < rounds; round++) {                                         \
                type *at = data + word(p, lane, warp, round);                                                          \
                type got = value;                                                                                      \
                asm volatile(text : __VA_ARGS__ : "memory");                                                           \
                old += got;                                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        if (out != nullptr) out[threadIdx.x] = old;                                                                    \
    }

GLOBAL(red_add_u32, unsigned, "red.relaxed.gpu.global.add.u32 [%0], %1;", : "l"(at), "r"(value))
GLOBAL(atom_add_u32, unsigned, "atom.relaxed.gpu.global.add.u32 %0, [%1], %2;", "=r"(got) : "l"(at), "r"(value))
GLOBAL(red_max_u32, unsigned, "red.relaxed.gpu.global.max.u32 [%0], %1;", : "l"(at), "r"(value))
GLOBAL(atom_cas_u32, unsigned, "atom.relaxed.gpu.global.cas.b32 %0, [%1], %2, %2;", "=r"(got) : "l"(at), "r"(value))
GLOBAL(atom_exch_u32, unsigned, "atom.relaxed.gpu.global.exch.b32 %0, [%1], %2;", "=r"(got) : "l"(at), "r"(value))
GLOBAL(red_add_f32, float, "red.relaxed.gpu.global.add.f32 [%0], %1;", : "l"(at), "f"(value))
GLOBAL(atom_add_f32, float, "atom.relaxed.gpu.global.add.f32 %0, [%1], %2;", "=f"(got) : "l"(at), "f"(value))
GLOBAL(red_add_u64, unsigned long long, "red.relaxed.gpu.global.add.u64 [%0], %1;", : "l"(at), "l"(value))
GLOBAL(red_add_f64, double, "red.relaxed.gpu.global.add.f64 [%0], %1;", : "l"(at), "d"(value))
GLOBAL(red_add_f16x2, unsigned, "red.relaxed.gpu.global.add.noftz.f16x2 [%0], %1;", : "l"(at), "r"(value))

// -- shared memory: as CUDA C++ is written, so with the compiler's loops ----------------------------------------------

constexpr int SHARED_WORDS = 2048;

#define SHARED(name, type, update)                                                                                     \
    extern "C" __global__ void shared_##name(PATTERN, int rounds, type value, type *out) {                             \
        const Pattern p = {lanes, sharing, lane_step, warp_step, round_step, mask, spread, random};                    \
        __shared__ type data[SHARED_WORDS];                                                                            \
        for (int i = threadIdx.x; i < SHARED_WORDS; i += blockDim.x) data[i] = 0;                                      \
        __syncthreads();                                                                                               \
        const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;                                               \
        type old = 0;                                                                                                  \
        if (lane < p.lanes) {                                                                                          \
            _Pragma("unroll 4") for (int round = 0; round < rounds; round++) {                                         \
                type *at = data + word(p, lane, warp, round) % SHARED_WORDS;                                           \
                update;                                                                                                \
            }                                                                                                          \
        }                                                                                                              \
        __syncthreads();                                                                                               \
        if (out != nullptr) out[threadIdx.x] = old + data[threadIdx.x];                                                \
    }

SHARED(increment_u32, unsigned, atomicAdd(at, 1u))
SHARED(add_u32, unsigned, atomicAdd(at, value))
SHARED(add_used_u32, unsigned, old += atomicAdd(at, value))
SHARED(max_u32, unsigned, atomicMax(at, value))
SHARED(cas_u32, unsigned, old += atomicCAS(at, value, value))
SHARED(exch_u32, unsigned, old += atomicExch(at, value))
SHARED(add_f32, float, atomicAdd(at, value))
SHARED(add_u64, unsigned long long, atomicAdd(at, value))

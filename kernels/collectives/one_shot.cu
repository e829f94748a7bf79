// An all-reduce of float32 for small messages, one launch per rank: every rank writes its numbers straight into an inbox
// at every other rank and adds what comes, in the order of the ranks, so that all get the same bits.
//
// Each 8 bytes carry 4 of data and a flag, the number of the call: they arrive together or not at all, so that no fence
// and no second message is needed (NCCL's protocol "LL"). Twice the bytes, but only one trip over the link.
// An inbox has two halves: a rank writes to one again two calls later, when it has had all of the call between, which
// every peer has sent after it had ended the first.
#include "signals.cuh"

// Of this rank. `call`: calls that have ended. `blocks_ended`: of the call that runs.
struct Calls {
    unsigned call, blocks_ended;
};

__device__ __forceinline__ unsigned long long flagged(float value, unsigned flag) {
    return (unsigned long long)flag << 32 | __float_as_uint(value);
}

// out[i] = sum over ranks of in[i]. `pairs`: of elements. `inboxes`: of all ranks, addresses; an inbox has room for
// `slot` pairs from each rank, twice: the next call may begin to write while others still read this one's. `abort`: the
// host's word.
extern "C" __global__ void one_shot_all_reduce(const float2 *in, float2 *out, unsigned pairs, unsigned rank,
                                               unsigned ranks, ulonglong2 *const *inboxes, size_t slot, Calls *calls,
                                               const unsigned *abort) {
    const unsigned flag = *(volatile unsigned *)&calls->call + 1;
    const size_t half = size_t(flag & 1) * ranks * slot;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += gridDim.x * blockDim.x) {
        const float2 mine = in[i];
        const unsigned long long x = flagged(mine.x, flag), y = flagged(mine.y, flag);
        for (unsigned hop = 1; hop < ranks; ++hop) {  // everyone begins with another peer
            const unsigned peer = (rank + hop) % ranks;
            asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(inboxes[peer] + half + rank * slot + i),
                         "l"(x), "l"(y)
                         : "memory");
        }
        float2 sum = make_float2(0, 0);
        for (unsigned source = 0; source < ranks; ++source) {
            unsigned long long u = x, v = y;
            if (source != rank) {
                const ulonglong2 *from = inboxes[rank] + half + source * slot + i;
                unsigned looks = 0;
                do {
                    asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];"
                                 : "=l"(u), "=l"(v)
                                 : "l"(from)
                                 : "memory");
                } while ((unsigned(u >> 32) != flag || unsigned(v >> 32) != flag) &&
                         (++looks % LOOKS || !called_off(abort)));
            }
            sum.x += __uint_as_float(unsigned(u));
            sum.y += __uint_as_float(unsigned(v));
        }
        out[i] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(&calls->blocks_ended, 1) == gridDim.x - 1) {  // all blocks have read `call`
        calls->blocks_ended = 0;
        calls->call = flag;
    }
}

// All-reduces of float32 for small messages, one launch per rank. One shot: every rank writes its numbers straight into an
// inbox at every other rank and adds what comes, in the order of the ranks, so that all get the same bits. Two shots:
// rank r gets and adds the r-th part alone, and writes the sum to all others, so that each sends 2(k - 1)/k of the
// buffer, not k - 1 of it, and waits for two trips.
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

__device__ __forceinline__ void send(ulonglong2 *there, float2 value, unsigned flag) {
    asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(there), "l"(flagged(value.x, flag)),
                 "l"(flagged(value.y, flag))
                 : "memory");
}

// Waits for the two words of this call; gives what is there when the host calls off.
__device__ __forceinline__ float2 receive(const ulonglong2 *here, unsigned flag, const unsigned *abort) {
    unsigned long long u, v;
    unsigned looks = 0;
    do {
        asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];" : "=l"(u), "=l"(v) : "l"(here) : "memory");
    } while ((unsigned(u >> 32) != flag || unsigned(v >> 32) != flag) && (++looks % LOOKS || !called_off(abort)));
    return make_float2(__uint_as_float(unsigned(u)), __uint_as_float(unsigned(v)));
}

__device__ __forceinline__ void end_call(Calls *calls, unsigned flag) {
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(&calls->blocks_ended, 1) == gridDim.x - 1) {  // all blocks have read `call`
        calls->blocks_ended = 0;
        calls->call = flag;
    }
}

// Both: out[i] = sum over ranks of in[i]. `pairs`: of elements. `inboxes`: of all ranks, addresses; an inbox has room for
// `slot` pairs from each rank, twice: the next call may begin to write while others still read this one's. `abort`: the
// host's word.
extern "C" __global__ void one_shot_all_reduce(const float2 *in, float2 *out, unsigned pairs, unsigned rank,
                                               unsigned ranks, ulonglong2 *const *inboxes, size_t slot, Calls *calls,
                                               const unsigned *abort) {
    const unsigned flag = *(volatile unsigned *)&calls->call + 1;
    const size_t half = size_t(flag & 1) * ranks * slot;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += gridDim.x * blockDim.x) {
        const float2 mine = in[i];
        for (unsigned hop = 1; hop < ranks; ++hop) {  // everyone begins with another peer
            send(inboxes[(rank + hop) % ranks] + half + rank * slot + i, mine, flag);
        }
        float2 sum = make_float2(0, 0);
        for (unsigned source = 0; source < ranks; ++source) {
            const float2 its = source == rank ? mine : receive(inboxes[rank] + half + source * slot + i, flag, abort);
            sum.x += its.x;
            sum.y += its.y;
        }
        out[i] = sum;
    }
    end_call(calls, flag);
}

// A thread has pair i of every part. Rank r's numbers of part p lie in p's inbox behind r * part, the sums of part r in
// everyone's behind (ranks + r) * part; at least two ranks have room for both.
extern "C" __global__ void two_shot_all_reduce(const float2 *in, float2 *out, unsigned pairs, unsigned rank,
                                               unsigned ranks, ulonglong2 *const *inboxes, size_t slot, Calls *calls,
                                               const unsigned *abort) {
    const unsigned flag = *(volatile unsigned *)&calls->call + 1;
    const size_t half = size_t(flag & 1) * ranks * slot, part = (pairs + ranks - 1) / ranks, own = rank * part;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < part; i += gridDim.x * blockDim.x) {
        for (unsigned hop = 1; hop < ranks; ++hop) {
            const unsigned peer = (rank + hop) % ranks;
            if (peer * part + i < pairs) send(inboxes[peer] + half + own + i, in[peer * part + i], flag);
        }
        if (own + i < pairs) {
            float2 sum = make_float2(0, 0);
            for (unsigned source = 0; source < ranks; ++source) {
                const ulonglong2 *from = inboxes[rank] + half + source * part + i;
                const float2 its = source == rank ? in[own + i] : receive(from, flag, abort);
                sum.x += its.x;
                sum.y += its.y;
            }
            for (unsigned hop = 1; hop < ranks; ++hop) {
                send(inboxes[(rank + hop) % ranks] + half + ranks * part + own + i, sum, flag);
            }
            out[own + i] = sum;
        }
        for (unsigned hop = 1; hop < ranks; ++hop) {
            const unsigned source = (rank + hop) % ranks;
            const ulonglong2 *from = inboxes[rank] + half + (ranks + source) * part + i;
            if (source * part + i < pairs) out[source * part + i] = receive(from, flag, abort);
        }
    }
    end_call(calls, flag);
}

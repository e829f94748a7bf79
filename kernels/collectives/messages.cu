// One message of a schedule, in two kernels: the source stores it into an inbox of the destination, which takes it from
// there. A flag per message, and a fence of system scope on either side of it.
#ifndef ITEM
#define ITEM float
#endif

// `inbox`, `come`: the message's own, on the destination. One block.
extern "C" __global__ void send_message(const ITEM *mine, ITEM *inbox, volatile unsigned *come, unsigned n) {
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) inbox[i] = mine[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        *come = 1;
    }
}

// Overwrites `mine` with the message, or adds it.
extern "C" __global__ void take_message(ITEM *mine, const ITEM *inbox, const volatile unsigned *come, unsigned n,
                                        int adds) {
    if (threadIdx.x == 0) {
        while (!*come) {
        }
        __threadfence_system();
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) mine[i] = adds ? mine[i] + inbox[i] : inbox[i];
}

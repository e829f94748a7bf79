// Which side of a branch runs when: one warp does if (threadIdx.x < 4) { A; B; } else { X; Y; } and then Z.
//
// Each letter is one line of source. It notes the time at which a lane began it, when[32 * letter + lane] in the order
// A, B, X, Y, Z, and then lasts for DURATION: clocks of the multiprocessor on a GPU, instructions on the simulator.
// With less to do, the compiler would make predicates of the branch (predication.cu) and there would be no sides.
// Measured: NVIDIA H100 80GB HBM3, 2026-11-21; the numbers after the letters are clocks since the first.
// `value`: what X computes; B reads it into read[lane] of its four lanes.

enum Letter { A, B, X, Y, Z };
constexpr long long DURATION = 500;

// A macro and no function, so that what it does counts for the line where it stands.
#define DO(letter)                                                                  \
    do {                                                                            \
        long long start, clock;                                                     \
        asm volatile("mov.u64 %0, %%clock64;" : "=l"(start)::"memory");             \
        when[32 * letter + threadIdx.x] = start;                                    \
        do {                                                                        \
            asm volatile("mov.u64 %0, %%clock64;" : "=l"(clock)::"memory");         \
        } while (clock - start < DURATION);                                         \
    } while (false)

// 1. No synchronisation.
// Expected: one side to its end, then the other, with the lanes of the first idle: A + B + X + Y; Z with all lanes.
// Reached: A 0, B 549, X 1114, Y 1663, Z 2235.
extern "C" __global__ void branch(long long *when) {
    if (threadIdx.x < 4) {
        DO(A);
        DO(B);
    } else {
        DO(X);
        DO(Y);
    }
    DO(Z);
}

// 2. B needs what X computes, and nothing makes it wait.
// Expected: a race. Which value B reads depends on which side the compiler and the hardware take first.
// Reached: A 0, B 549, X 1184, Y 1778, Z 2357; B read 0 (value was 42).
extern "C" __global__ void unordered(long long *when, int *read, int value) {
    __shared__ int result;
    if (threadIdx.x == 0) result = 0;
    __syncwarp();
    if (threadIdx.x < 4) {
        DO(A);
        DO(B); read[threadIdx.x] = result;
    } else {
        DO(X); result = value;
        DO(Y);
    }
    __syncwarp();
    DO(Z);
}

// 3. __syncwarp() in both sides: its lanes wait until all 32 have come to one, here or there. From Volta on only: each
// lane has a program counter, so that the warp can leave one side for the other. The last one makes the sides meet.
// Expected: A and X, in either order, then B and Y, in either order; B reads what X wrote. Costs what the branch costs.
// Reached: A 0, X 619, Y 1295, B 1953, Z 2594; B read 42.
extern "C" __global__ void ordered(long long *when, int *read, int value) {
    __shared__ int result;
    if (threadIdx.x < 4) {
        DO(A);
        __syncwarp();
        DO(B); read[threadIdx.x] = result;
    } else {
        DO(X); result = value;
        __syncwarp();
        DO(Y);
    }
    __syncwarp();
    DO(Z);
}

// 4. A __syncwarp() after every letter: both sides come to the same three, and between two of them one side works.
// Expected: A X B Y, now in this order and no other.
// Reached: A 0, X 710, B 1498, Y 2376, Z 3069; B read 42.
extern "C" __global__ void in_turn(long long *when, int *read, int value) {
    __shared__ int result;
    if (threadIdx.x < 4) {
        DO(A);
        __syncwarp();
        __syncwarp();
        DO(B); read[threadIdx.x] = result;
        __syncwarp();
    } else {
        __syncwarp();
        DO(X); result = value;
        __syncwarp();
        __syncwarp();
        DO(Y);
    }
    __syncwarp();
    DO(Z);
}

// 5. B waits for X by itself, in a loop on a flag.
// Expected: with one program counter per warp (Pascal) a deadlock if the warp takes the side of A first: its lanes spin
// until X sets the flag, and X runs when they have done. From Volta on every lane gets on in the end.
// Reached: A 0, X 598, Y 1211, B 1965, Z 2597; B read 42.
extern "C" __global__ void handshake(long long *when, int *read, int value) {
    __shared__ volatile int ready, result;
    if (threadIdx.x == 0) ready = 0;
    __syncwarp();
    if (threadIdx.x < 4) {
        DO(A);
        while (!ready) {}
        DO(B); read[threadIdx.x] = result;
    } else {
        DO(X); result = value; __threadfence_block(); ready = 1;
        DO(Y);
    }
    __syncwarp();
    DO(Z);
}

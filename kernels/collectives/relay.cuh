// How a block moves pieces of this rank's buffer into the same places of the next rank's, by TMA and a thread per stage:
// it waits for a piece to come from the rank before, has it loaded into its stage of shared memory, has it stored, or
// added to what lies at the next rank, waits until that is complete, and tells the next rank. The stages are at work at
// the same time, so that the link has the others' stores while one waits. All blocks of all ranks must be on the GPUs
// at once.
//
// Seen on two H200, 2026-11-22, a broadcast of 1 GiB: 370 GB/s with pieces of 64 KiB and 3 stages, 345 with 16 KiB and
// 12. With one thread for all stores 358 and 294: each piece waited for the word about the one before, some microseconds
// across the link and back. Sums became slower by it, 345 to 312 GB/s with 64 KiB; 96 KiB, 2 stages and 8 rounds gave
// 346 on the bus again on two and on four, 2026-11-26; why is not known.
//
// What limits a broadcast, seen on four H200, 2026-11-26, each GPU sending to the next at once: the same loads and stores
// with no words at all 367 GB/s with 132 blocks, 360 with 48 and 343 with 16, whatever the tile (16 to 64 KiB); with
// loads from the rank before and stores at home 337; half of the tiles in each way 253; copy engines 396.
#pragma once
#include "bulk_copies.cuh"
#include "signals.cuh"

#ifndef PIECE
#define PIECE 32768
#endif
#ifndef STAGES
#define STAGES 6
#endif
constexpr int RELAY_THREADS = 32 * STAGES;  // a warp per stage, of which one thread works
constexpr int MOST_STAGES = 31;
static_assert(STAGES <= MOST_STAGES, "a mailbox has so many counters");
constexpr unsigned NOTHING = ~0u;

// What a block of this rank hears from the same block of its neighbours, and keeps from launch to launch. Piece i belongs
// to stage i % STAGES.
struct alignas(256) Mailbox {
    unsigned come[MOST_STAGES];    // from the rank before: a stage's pieces that lie complete here, of all launches
    unsigned next_started;         // from the next rank: its launches that have begun, so that it may be written to
    unsigned before[MOST_STAGES];  // this block's: a stage's pieces of all earlier launches
    unsigned launches;             // this block's: launches that have ended
};

struct Piece {
    size_t start;    // in the buffer, bytes, a multiple of 16
    unsigned bytes;  // a multiple of 16, or 0: only word is sent
    unsigned after;  // which of the pieces of the rank before must have come before this one may be read, or NOTHING
    bool add;        // as float32, to what lies at the next rank
};

// Pieces of `count` that belong to a stage.
__device__ __forceinline__ unsigned of_stage(unsigned count, unsigned stage) {
    return (count + STAGES - 1 - stage) / STAGES;
}

// Sends pieces 0 to `sends` - 1, which `piece(i)` describes, and ends when `comes` pieces have come.
// `next`: the next rank's buffer; may be null if nothing is sent. `there`: its mailbox for this block. `before`: the
// mailbox of the rank before, null if nothing comes. Ends early when the host calls off; the mailboxes are void then.
template <class Pieces>
__device__ void relay(const char *data, char *next, Mailbox &box, Mailbox *there, Mailbox *before, unsigned sends,
                      unsigned comes, const unsigned *abort, Pieces piece) {
    extern __shared__ __align__(128) char stages[];
    __shared__ alignas(8) unsigned long long full[STAGES];

    const unsigned stage = threadIdx.x / 32, launch = box.launches + 1;
    // All ranks count as many pieces in a launch, whether they send or get: the next rank's `before` is the same.
    const unsigned already = box.before[stage];
    if (threadIdx.x % 32 == 0) {
        const unsigned loaded = shared_address(&full[stage]), place = shared_address(stages + stage * PIECE);
        barrier_init(loaded, 1);
        fence_barrier_init();
        if (threadIdx.x == 0 && before) tell(&before->next_started, launch);

        bool go_on = true;
        for (unsigned i = stage, round = 0; i < sends; i += STAGES, ++round) {
            const Piece p = piece(i);
            if (p.after != NOTHING) {
                const unsigned its = p.after % STAGES;
                go_on = wait_for(&box.come[its], box.before[its] + p.after / STAGES + 1, abort);
                if (!go_on) break;
                fence_for_bulk();
            }
            barrier_expect(loaded, p.bytes);
            if (p.bytes) bulk_load(place, data + p.start, p.bytes, loaded);
            if (round == 0) {
                go_on = wait_for(&box.next_started, launch, abort);
                fence_for_bulk();  // the stores below come after what the next rank's earlier kernels did there
            }
            barrier_wait(loaded, round & 1);
            if (!go_on) break;
            if (p.bytes) {
                if (p.add) bulk_add(next + p.start, place, p.bytes);
                else bulk_store(next + p.start, place, p.bytes);
                stores_commit();
                stores_have_ended<0>();
                fence_for_bulk();
            }
            tell(&there->come[stage], already + round + 1);
        }
        if (go_on && comes) wait_for(&box.come[stage], already + of_stage(comes, stage), abort);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) box.before[stage] = already + of_stage(max(sends, comes), stage);
    if (threadIdx.x == 0) box.launches = launch;
}

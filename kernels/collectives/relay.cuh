// How a block moves pieces of this rank's buffer into the same places of the next rank's, by TMA and two threads: the
// first waits for a piece to come from the rank before and has it loaded into shared memory; the second has it stored,
// or added to what lies there, and tells the next rank once that is complete. STAGES pieces of at most PIECE bytes are
// under way. All blocks of all ranks must be on the GPUs at once.
#pragma once
#include "bulk_copies.cuh"
#include "signals.cuh"

#ifndef PIECE
#define PIECE 65536
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef BEHIND
#define BEHIND 1  // stores that may be incomplete while the next one is given to TMA
#endif
static_assert(BEHIND > 0 && BEHIND < STAGES, "a stage is stored while others are loaded");

constexpr int RELAY_THREADS = 64;  // two warps, of which one thread each works

// What a block of this rank hears from the same block of its neighbours, and keeps from launch to launch.
struct alignas(128) Mailbox {
    unsigned come;          // from the rank before: pieces that lie complete in this rank's buffer, of all launches
    unsigned next_started;  // from the next rank: its launches that have begun, so that its buffer may be written
    unsigned come_before;   // this block's: pieces of all earlier launches
    unsigned launches;      // this block's: launches that have ended
};

struct Piece {
    size_t start;    // in the buffer, bytes, a multiple of 16
    unsigned bytes;  // a multiple of 16, or 0: only word is sent
    unsigned needs;  // pieces that must have come in this launch before this one may be read
    bool add;        // as float32, to what lies at the next rank
};

// Sends pieces 0 to `sends` - 1, which `piece(i)` describes, and ends when `comes` pieces have come.
// `next`: the next rank's buffer; may be null if nothing is sent. `there`: its mailbox for this block. `before`: the
// mailbox of the rank before, null if nothing comes. Ends early when the host calls off; the mailboxes are void then.
template <class Pieces>
__device__ void relay(const char *data, char *next, Mailbox &box, Mailbox *there, Mailbox *before, unsigned sends,
                      unsigned comes, const unsigned *abort, Pieces piece) {
    extern __shared__ __align__(128) char stages[];
    __shared__ alignas(8) unsigned long long full[STAGES], empty[STAGES];
    __shared__ volatile unsigned given;  // pieces that are loaded in all: fewer than `sends` when called off

    const unsigned already = box.come_before, launch = box.launches + 1;
    const bool loads = threadIdx.x == 0, stores = threadIdx.x == 32;
    if (loads) {
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(shared_address(&full[stage]), 1);
            barrier_init(shared_address(&empty[stage]), 1);
        }
        fence_barrier_init();
        given = sends;
    }
    __syncthreads();

    if (loads) {
        if (before) tell(&before->next_started, launch);
        unsigned come = already, looks = 0;
        bool go_on = true;
        for (unsigned i = 0; i < sends; ++i) {
            const Piece p = piece(i);
            const unsigned stage = i % STAGES, full_stage = shared_address(&full[stage]);
            while (go_on && !barrier_ended(shared_address(&empty[stage]), (i / STAGES & 1) ^ 1)) {
                go_on = ++looks % LOOKS || !called_off(abort);
            }
            while (go_on && p.needs && !reached(come, already + p.needs)) {
                come = look(&box.come);
                go_on = ++looks % LOOKS || !called_off(abort);
            }
            if (!go_on) {
                given = i;
                break;
            }
            if (p.needs) fence_for_bulk();
            barrier_expect(full_stage, p.bytes);
            if (p.bytes) bulk_load(shared_address(stages + stage * PIECE), data + p.start, p.bytes, full_stage);
        }
        if (go_on && comes) wait_for(&box.come, already + comes, abort);
    } else if (stores && sends) {
        // All ranks count as many pieces in a launch, whether they send or get: `already` is the next rank's too.
        const bool room = wait_for(&box.next_started, launch, abort);
        const auto tell_next = [&](unsigned complete) {
            fence_for_bulk();
            if (room) tell(&there->come, already + complete);
        };
        unsigned told = 0;
        for (unsigned i = 0; i < sends; ++i) {
            const Piece p = piece(i);
            const unsigned full_stage = shared_address(&full[i % STAGES]), parity = i / STAGES & 1;
            bool ended = barrier_ended(full_stage, parity);
            if (!ended && told < i) {  // nothing to store yet: wait for what is under way
                stores_have_ended<0>();
                tell_next(told = i);
            }
            while (!ended && i < given) ended = barrier_ended(full_stage, parity);
            if (!ended) break;
            const unsigned from = shared_address(stages + i % STAGES * PIECE);
            if (room && p.bytes) {
                if (p.add) bulk_add(next + p.start, from, p.bytes);
                else bulk_store(next + p.start, from, p.bytes);
            }
            stores_commit();
            if (i) {  // the piece before has left its stage
                stores_have_read<1>();
                barrier_arrive(shared_address(&empty[(i - 1) % STAGES]));
            }
            if (i >= told + BEHIND) {
                stores_have_ended<BEHIND>();
                tell_next(told = i + 1 - BEHIND);
            }
        }
        stores_have_ended<0>();
        if (told < given) tell_next(given);
    }
    __syncthreads();
    if (loads) {
        box.come_before = already + max(sends, comes);
        box.launches = launch;
    }
}

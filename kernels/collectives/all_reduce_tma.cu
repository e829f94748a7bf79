// The ring all-reduce of float32, in place, one launch per rank: TMA adds into the next rank's memory.
//
// The buffer is cut into tiles, k of which are a round: a tile starts at one rank, goes k - 1 hops as an addition,
// after which the last rank has the sum, and k - 1 hops more as a store. In step j rank r sends the round's tile number
// (r - j) mod k, which came in step j - 1. A block goes through TOGETHER rounds side by side, so that it has others to
// send while a tile is on its way to the next rank and not yet known to have come.
#include "relay.cuh"

#ifndef TOGETHER
#define TOGETHER 4
#endif

// `data`: this rank's buffer. `next`: the next rank's. `bytes`: a multiple of 16. `boxes`, `next_boxes`, `boxes_before`:
// mailboxes of the three ranks, one per block.
extern "C" __global__ void __launch_bounds__(RELAY_THREADS)
    all_reduce_tma(const float *data, float *next, size_t bytes, unsigned rank, unsigned ranks, Mailbox *boxes,
                   Mailbox *next_boxes, Mailbox *boxes_before, const unsigned *abort) {
    const unsigned block = blockIdx.x, blocks = gridDim.x, steps = 2 * (ranks - 1);
    // Tiles are of one size, a multiple of 16 bytes that fits rounds · k · blocks of them to the buffer.
    const size_t at_once = size_t(TOGETHER) * ranks * blocks;
    const unsigned passes = unsigned((bytes + at_once * PIECE - 1) / (at_once * PIECE));
    const unsigned tile = unsigned(((bytes + passes * at_once - 1) / (passes * at_once) + 15) / 16 * 16);
    const unsigned sends = passes * steps * TOGETHER;
    const char *from = reinterpret_cast<const char *>(data);
    char *to = reinterpret_cast<char *>(next);
    relay(from, to, boxes[block], next_boxes + block, boxes_before + block, sends, sends, abort, [=](unsigned i) {
        const unsigned side = i % TOGETHER, step = i / TOGETHER % steps, pass = i / TOGETHER / steps;
        const unsigned part = (rank + 2 * ranks - step % ranks) % ranks;
        const size_t number = ((size_t(pass) * TOGETHER + side) * blocks + block) * ranks + part;
        const size_t start = min(number * tile, bytes);
        const unsigned length = unsigned(min(size_t(tile), bytes - start));
        return Piece{start, length, step ? i - TOGETHER : NOTHING, step < ranks - 1};
    });
}

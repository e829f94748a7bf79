// A broadcast along a ring, one launch per rank: the blocks move tiles from this rank's buffer into the next rank's.
//
// What changes from forward.cu: tiles of PIECE bytes go through shared memory by TMA, not through registers, and a few
// threads of a block do all (relay.cuh).
#include "relay.cuh"

// `data`: this rank's buffer. `next`: the next rank's, null at the end of the ring. `bytes`: a multiple of 16.
// `boxes`, `next_boxes`, `boxes_before`: mailboxes of the three ranks, one per block; null at the ends of the ring.
extern "C" __global__ void __launch_bounds__(RELAY_THREADS)
    forward_tma(const void *data, void *next, size_t bytes, Mailbox *boxes, Mailbox *next_boxes, Mailbox *boxes_before,
                const unsigned *abort) {
    const unsigned block = blockIdx.x, blocks = gridDim.x;
    const size_t tiles = (bytes + PIECE - 1) / PIECE;
    const unsigned share = unsigned(tiles > block ? (tiles - block - 1) / blocks + 1 : 0);
    const bool comes = boxes_before != nullptr;
    Mailbox *there = next ? next_boxes + block : nullptr, *before = comes ? boxes_before + block : nullptr;
    relay(static_cast<const char *>(data), static_cast<char *>(next), boxes[block], there, before, next ? share : 0,
          comes ? share : 0, abort, [=](unsigned i) {
              const size_t start = (size_t(i) * blocks + block) * PIECE;
              return Piece{start, unsigned(min(size_t(PIECE), bytes - start)), comes ? i : NOTHING, false};
          });
}

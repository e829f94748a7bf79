"""The record of what wgmma has read, asked by those who write there."""

from types import SimpleNamespace

import numpy as np

from warplab.simulator.check.operand_reads import OperandReads


def test_a_write_of_half_a_piece_leaves_the_reads_to_whoever_writes_the_rest():
    shared = SimpleNamespace(nbytes=1024)
    blocks = np.zeros(128, np.int64)
    chunk = SimpleNamespace(
        threads=128, lanes=128, blocks=1, shared_stride=1024, block_of=blocks, access=SimpleNamespace(shared=shared)
    )
    clocks = SimpleNamespace(now=3, knows=lambda lanes, others, time: lanes == 1)
    reads = OperandReads(chunk, clocks)
    reads.read(SimpleNamespace(index=5), np.array([2, 3]), np.array([0, 0]))
    assert reads.site[2:4].tolist() == [5, 5]
    start = np.array([32])
    assert reads.unaware(start, np.array([1]), ends=False).tolist() == [-1]
    assert reads.unaware(start + 8, np.array([7]), ends=False).tolist() == [0]
    assert reads.unaware(start, np.array([1]), ends=True).tolist() == [-1]
    assert reads.unaware(start + 8, np.array([7]), ends=True) is None
    assert reads.unaware(start + 16, np.array([7]), ends=True).tolist() == [0]  # another piece

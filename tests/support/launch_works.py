"""Launches for tests of estimates, made of plain numbers instead of a simulation."""

from __future__ import annotations

from warplab.compile.control_codes import NONE
from warplab.estimating.work import CodeBlock, Row, Work

SMS = 132


def instruction(opcode: str, pipe: str, warps: float, *, stall: int = 1, writes: int = NONE, waits: int = 0) -> Row:
    """A machine instruction that `warps` warps issue. `writes`, `waits`: as in `Control`."""
    return Row(opcode, opcode, pipe, stall, writes, NONE, waits, 0, warps, "kernel.cu", 1)


def launch_work(
    rows: tuple[Row, ...] = (), *, blocks: float = SMS, threads: int = 256, loop: int = -1, **other
) -> Work:
    """A launch whose machine code is `rows`, one basic block, in a loop if `loop` is 0. `other`: fields of `Work`."""
    warps = rows[0].warps if rows else 0.0
    values = {
        "registers": 32,
        "shared_bytes": 0,
        "barriers": 0,
        "counts": {},
        "loaded": 0.0,
        "stored": 0.0,
        "hits": {},
        "again": 0.0,
        "pair_bytes": 1.0,
        "hottest": 0.0,
        "atomic_addresses": 0.0,
        "products": {},
        **other,
    }
    code = (CodeBlock(0, len(rows), warps, loop),)
    return Work(kernel="kernel", blocks=blocks, threads=threads, rows=rows, code=code, **values)

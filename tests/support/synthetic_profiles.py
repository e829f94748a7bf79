"""Launch profiles made by hand, whose counts the tests know without running the simulator."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from warplab.launch.launch_record import LaunchRecord
from warplab.simulator.count.counters import Access, Counts

SOURCE = """\
extern "C" __global__ void vector_multiply(const float *a, const float *b, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = a[i] * b[i];
}
"""
FILE = "vector_multiply.cu"
STARTS = {"a": 0x10000, "b": 0x20000, "out": 0x30000}


@dataclass
class Session:
    """A profile of several launches."""

    launches: list[LaunchRecord] = field(default_factory=list)


def access(element, *, op="load", array="a", width=4, line=4, size=None, warp=0, start=None, file=FILE) -> Access:
    """Make one warp's access: lane t touches element `element(t)`, each of `size` bytes (`width` unless given)."""
    threads = np.arange(32) + 32 * warp
    start = STARTS.get(array, 0x40000) if start is None else start
    offsets = np.array([element(int(t)) for t in threads], dtype=np.int64) * (size or width)
    return Access(
        op=op,
        space="global",
        file=file,
        line=line,
        width=width,
        block=np.zeros(32, dtype=np.int64),
        thread=threads,
        address=(start + offsets).astype(np.uint64),
        array=array,
        array_start=start,
    )


def sectors_of(one: Access) -> int:
    return len({int(a + b) // 32 for a in one.address for b in range(one.width)})


def launch_of(accesses: list[Access], kernel="kernel", grid=(1, 1, 1), block=(32, 1, 1)) -> LaunchRecord:
    """Make a launch that did `accesses` and nothing else; each access is one request."""
    lines: dict[tuple[str, int], Counts] = {}
    touched: dict[str, set[int]] = {"load": set(), "store": set()}
    for one in accesses:
        bytes_ = one.width * len(one.address)
        c = Counts(warp_instructions=1, thread_instructions=len(one.address))
        setattr(c, f"global_{one.op}_requests", 1)
        setattr(c, f"global_{one.op}_sectors", sectors_of(one))
        setattr(c, f"global_{one.op}_bytes", bytes_)
        lines[one.file, one.line] = lines.get((one.file, one.line), Counts()) + c
        touched[one.op] |= {int(a + b) // 32 for a in one.address for b in range(one.width)}
    return LaunchRecord(
        kernel=kernel,
        grid=grid,
        block=block,
        counts=sum(lines.values(), Counts()),
        lines=lines,
        sources={FILE: SOURCE},
        accesses=accesses,
        footprint={f"global_{op}_bytes": 32 * len(s) for op, s in touched.items()},
    )


def vector_multiply(blocks=4096, threads=256, **changes) -> LaunchRecord:
    """out = a * b over blocks x threads float32, coalesced: exact counts of such a launch."""
    n = blocks * threads
    warps = n // 32
    line = {
        2: Counts(warp_instructions=4 * warps, thread_instructions=4 * n),
        3: Counts(warp_instructions=2 * warps, thread_instructions=2 * n, branches=warps),
        4: Counts(
            warp_instructions=8 * warps,
            thread_instructions=8 * n,
            global_load_requests=2 * warps,
            global_load_sectors=8 * warps,
            global_load_bytes=8 * n,
            global_store_requests=warps,
            global_store_sectors=4 * warps,
            global_store_bytes=4 * n,
            flops_f32=n,
        ),
    }
    profile = LaunchRecord(
        kernel="vector_multiply",
        grid=(blocks, 1, 1),
        block=(threads, 1, 1),
        counts=sum(line.values(), Counts()),
        lines={(FILE, number): counts for number, counts in line.items()},
        sources={FILE: SOURCE},
        accesses=[
            access(lambda t: t, array="a"),
            access(lambda t: t, array="b"),
            access(lambda t: t, array="out", op="store"),
        ],
        footprint={"global_load_bytes": 8 * n, "global_store_bytes": 4 * n},
    )
    for name, value in changes.items():
        setattr(profile, name, value)
    return profile

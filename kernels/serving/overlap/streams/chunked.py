"""An array that is copied to the GPU, worked on and copied back, in chunks that go through streams in turns."""

from collections.abc import Callable

from kernels.serving.overlap.streams.schedule import DEFAULT, Schedule

ORDERS = ("depth", "breadth")
CHUNKS = 8
WAYS = {
    "pageable, default stream": (1, 0, "depth", False),
    "whole, 1 stream": (1, 1, "depth", True),
    "chunks, 1 stream": (CHUNKS, 1, "depth", True),
    "chunks, 2 streams": (CHUNKS, 2, "depth", True),
    "chunks, 2 streams, breadth first": (CHUNKS, 2, "breadth", True),
    "chunks, 3 streams": (CHUNKS, 3, "depth", True),
    "chunks, 4 streams": (CHUNKS, 4, "depth", True),
    "chunks, 8 streams": (CHUNKS, 8, "depth", True),
}
"""(chunks, streams, order of issue, pinned) by name."""


def chunked(
    chunks: int,
    streams: int,
    *,
    h2d: float,
    kernel: float,
    d2h: float,
    order: str = "depth",
    pinned: bool = True,
    actions: Callable[[str, int], Callable[[], object]] | None = None,
) -> Schedule:
    """Return the schedule of an array in `chunks`, over so many streams; 0 streams: all in the default stream.

    `h2d`, `kernel`, `d2h`: milliseconds for the whole array, shared out evenly. `order`: "depth", all three stages of a
    chunk are issued before the next chunk's, or "breadth", all copies first, then all kernels. `actions(stage, chunk)`:
    what runs on a GPU. ValueError for other orders, less than one chunk or a negative number of streams.
    """
    if order not in ORDERS:
        raise ValueError(f"order is one of {', '.join(ORDERS)}, not {order!r}")
    if chunks < 1 or streams < 0:
        raise ValueError(f"{chunks} chunks in {streams} streams: at least one chunk, and no negative number of streams")
    schedule = Schedule()

    def issue(stage: str, i: int) -> None:
        stream: str | int = i % streams if streams else DEFAULT
        action = actions(stage, i) if actions else None
        if stage == "h2d":
            schedule.h2d(f"x{i}", stream, ms=h2d / chunks, pinned=pinned, action=action)
        elif stage == "kernel":
            reads, writes = f"x{i}", f"y{i}"
            schedule.kernel(f"kernel {i}", stream, ms=kernel / chunks, reads=reads, writes=writes, action=action)
        else:
            schedule.d2h(f"y{i}", stream, ms=d2h / chunks, pinned=pinned, action=action)

    stages = ("h2d", "kernel", "d2h")
    if order == "depth":
        for i in range(chunks):
            for stage in stages:
                issue(stage, i)
    else:
        for stage in stages:
            for i in range(chunks):
                issue(stage, i)
    return schedule

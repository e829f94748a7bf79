"""What lab 11 measures of streams and of the video pipeline on a GPU. Importing it needs no GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernels.serving import busy_kernels
from kernels.serving.chunked import chunked
from kernels.serving.stream_execution import execute
from kernels.serving.stream_timeline import Timeline
from warplab.bench import timing
from warplab.bench.benchmark import Table

BYTES = 2**28
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


def overlap(nbytes: int = BYTES, runs: int = 5) -> dict[str, Any]:
    """An array copied to the GPU, worked on and copied back: in one piece or chunks, over 1 to 8 streams.

    The kernel is set so that it takes as long as the copy to the device. Each result is checked. Rows: milliseconds
    (median of `runs`, from the first operation's start to the last one's end, by events), engines' busy and shared
    time; spans of the median run.
    """
    cupy = timing.cupy_on_gpu()
    n = nbytes // 4
    pinned = [_pinned(cupy, n) for _ in range(2)]
    pageable = [np.ones(n, np.float32) for _ in range(2)]
    x, y = cupy.empty(n, np.float32), cupy.empty(n, np.float32)
    pinned[0][:] = pageable[0][:] = np.random.default_rng(11).uniform(-1, 0.2, n).astype(np.float32)
    whole = _actions(cupy, pinned[0], pinned[1], x, y, 1, 64)
    stages = {stage: timing.time_gpu(whole(stage, 0), runs=5).seconds for stage in ("h2d", "kernel", "d2h")}
    rounds = 64
    for _ in range(2):  # the second time from near the goal, where memory no longer counts
        rounds = max(1, round(rounds * stages["h2d"] / stages["kernel"]))
        whole = _actions(cupy, pinned[0], pinned[1], x, y, 1, rounds)
        stages["kernel"] = timing.time_gpu(whole("kernel", 0), runs=5).seconds
    ms = {stage: 1e3 * seconds for stage, seconds in stages.items()}
    whole("kernel", 0)()
    expected = cupy.asnumpy(y)
    rows = []
    for name, (chunks, streams, order, is_pinned) in WAYS.items():
        source, target = pinned if is_pinned else pageable
        actions = _actions(cupy, source, target, x, y, chunks, rounds)
        schedule = chunked(chunks, streams, **ms, order=order, pinned=is_pinned, actions=actions)
        execute(schedule)
        target.fill(np.nan)
        x.fill(np.nan)
        y.fill(np.nan)
        timelines = sorted((execute(schedule) for _ in range(runs)), key=_length)
        correct = bool(np.array_equal(target, expected))
        median = timelines[runs // 2]
        rows.append(
            {"way": name, "ms": _length(median), "correct": correct, **_shares(median), "spans": _spans(median)}
        )
    return {"bytes": nbytes, "chunks": CHUNKS, "rounds": rounds, "stage_ms": ms, "rows": rows}


def _pinned(cupy: Any, n: int) -> np.ndarray:
    memory = cupy.cuda.alloc_pinned_memory(4 * n)
    return np.frombuffer(memory, np.float32, n)


def _actions(
    cupy: Any, source: np.ndarray, target: np.ndarray, x: Any, y: Any, chunks: int, rounds: int
) -> Callable[[str, int], Callable[[], object]]:
    size = x.size // chunks
    runtime = cupy.cuda.runtime

    def action(stage: str, i: int) -> Callable[[], object]:
        part = slice(i * size, (i + 1) * size)
        inputs, outputs, nbytes = x[part], y[part], 4 * size

        def copy(to: int, given: int, kind: int) -> None:
            runtime.memcpyAsync(to, given, nbytes, kind, cupy.cuda.get_current_stream().ptr)

        if stage == "h2d":
            return lambda: copy(inputs.data.ptr, source[part].ctypes.data, runtime.memcpyHostToDevice)
        if stage == "d2h":
            return lambda: copy(target[part].ctypes.data, outputs.data.ptr, runtime.memcpyDeviceToHost)
        return lambda: busy_kernels.spin(inputs, rounds, outputs)

    return action


def _length(timeline: Timeline) -> float:
    return timeline.end - min(span.start for span in timeline.spans)


def _shares(timeline: Timeline) -> dict[str, float]:
    engines = ("H2D", "SMs", "D2H")
    return {f"busy_{e}_ms": timeline.busy(e) for e in engines} | {
        "both_copies_ms": timeline.overlap("H2D", "D2H"),
        "copy_and_kernel_ms": timeline.overlap("H2D", "SMs"),
    }


def _spans(timeline: Timeline) -> list[list[Any]]:
    """[operation's name, stream, engine, start, end] of each operation, in milliseconds."""
    return [[s.operation.name, s.operation.stream, s.engine, s.start, s.end] for s in timeline.spans]


def _overlap_text(value: dict[str, Any]) -> str:
    rows = [(r["way"], r["ms"], r["copy_and_kernel_ms"], r["both_copies_ms"], r["correct"]) for r in value["rows"]]
    header = ("way", "ms", "copy and kernel, ms", "both copies, ms", "right")
    return f"{value['bytes']:,} bytes there and back\n" + timing.table(header, rows)


def _overlap_summary(value: dict[str, Any]) -> dict[str, Any]:
    return {"ms": {row["way"]: row["ms"] for row in value["rows"]}}


MEASUREMENTS: dict[str, Callable[[], Any]] = {"overlap": overlap}
TABLES = {"overlap": Table(_overlap_text, _overlap_summary)}

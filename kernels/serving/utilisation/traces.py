"""Timelines that profilers wrote: spans of kernels and copies, how long anything ran, and where nothing did.

`spans` reads a Chrome trace (torch.profiler's, which takes its times from CUPTI as Nsight Systems does).
"""

import gzip
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KERNEL, UP, DOWN, ON_DEVICE, CALL = "kernel", "copy up", "copy down", "copy on the device", "call"
_CATEGORIES = {"kernel": KERNEL, "gpu_memcpy": "", "gpu_memset": ON_DEVICE, "cuda_runtime": CALL, "cuda_driver": CALL}
_COPIES = {"HtoD": UP, "DtoH": DOWN, "DtoD": ON_DEVICE}


@dataclass(frozen=True)
class Span:
    """Something that ran. `kind`: KERNEL, UP, DOWN, ON_DEVICE, or CALL for the host's call into CUDA.

    `start`, `seconds`: since the first span of the trace, and how long. `stream`: of the GPU; None for calls.
    `about`: what else the profiler says, such as grid, block and bytes.
    """

    name: str
    kind: str
    start: float
    seconds: float
    stream: int | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def end(self) -> float:
        return self.start + self.seconds


def read(path: Path | str) -> list[Span]:
    """Return the spans of a trace in a file, .json or .json.gz."""
    data = Path(path).read_bytes()
    return spans(json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data))


def spans(trace: Mapping[str, Any]) -> list[Span]:
    """Return kernels, copies and calls of a Chrome trace, by start. ValueError for what is not one."""
    if "traceEvents" not in trace:
        raise ValueError("this is no Chrome trace: it has no traceEvents; export one with export_chrome_trace()")
    found = []
    for event in trace["traceEvents"]:
        category = event.get("cat")
        if event.get("ph") != "X" or category not in _CATEGORIES:
            continue
        about, name = event.get("args", {}), event["name"]
        kind = _CATEGORIES[category] or next((k for word, k in _COPIES.items() if word in name), ON_DEVICE)
        stream = None if kind == CALL else about.get("stream")
        found.append(Span(name, kind, event["ts"] / 1e6, event["dur"] / 1e6, stream, about))
    found.sort(key=lambda span: span.start)
    first = found[0].start if found else 0.0
    return [Span(s.name, s.kind, s.start - first, s.seconds, s.stream, s.about) for s in found]


def on_gpu(found: Iterable[Span]) -> list[Span]:
    """Return the spans of the GPU, without the host's calls."""
    return [span for span in found if span.kind != CALL]


def union(found: Iterable[Any]) -> list[tuple[float, float]]:
    """Return start and end of the stretches of time in which at least one of these ran; they have `start` and `end`."""
    merged: list[list[float]] = []
    for span in sorted(found, key=lambda span: span.start):
        if merged and span.start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], span.end)
        else:
            merged.append([span.start, span.end])
    return [(start, end) for start, end in merged]


def share(found: Sequence[Span], kinds: Iterable[str] = (KERNEL,)) -> float:
    """Return the share of the GPU's time, from its first span to its last, in which a span of these kinds ran.

    Of kernels alone it is what NVML calls utilisation. ValueError without a span on the GPU.
    """
    gpu, kinds = on_gpu(found), set(kinds)
    if not gpu:
        raise ValueError("the trace has no span on a GPU; profile with CUDA activities")
    whole = max(span.end for span in gpu) - min(span.start for span in gpu)
    return sum(end - start for start, end in union(s for s in gpu if s.kind in kinds)) / whole


def gaps(found: Sequence[Span]) -> list[tuple[float, float]]:
    """Return start and end of the stretches between the first and the last span on the GPU in which nothing ran."""
    busy = union(on_gpu(found))
    return [(end, start) for (_, end), (start, _) in itertools.pairwise(busy)]


def summary(found: Sequence[Span]) -> list[dict[str, Any]]:
    """Return a row per kernel or kind of copy, as Nsight Systems has: count, seconds in all, share of their sum."""
    rows: dict[str, list[float]] = {}
    for span in on_gpu(found):
        rows.setdefault(span.name if span.kind == KERNEL else span.kind, []).append(span.seconds)
    total = sum(map(sum, rows.values()))
    made = [
        {"name": name, "count": len(each), "seconds": sum(each), "share": sum(each) / total, "longest": max(each)}
        for name, each in rows.items()
    ]
    return sorted(made, key=lambda row: -row["seconds"])

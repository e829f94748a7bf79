"""What lab 11 measures of streams and of the video pipeline on a GPU. Importing it needs no GPU."""

import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kernels.serving.overlap.streams import preprocess, video
from kernels.serving.overlap.streams.chunked import CHUNKS, WAYS, chunked
from kernels.serving.overlap.streams.execution import DECODE_CALL, execute
from kernels.serving.overlap.streams.pipeline import Stages, one_after_the_other, pipelined
from kernels.serving.overlap.streams.pipeline_on_gpu import WARM_UP, PipelineOnGpu
from kernels.serving.overlap.streams.schedule import Schedule
from kernels.serving.overlap.streams.timeline import Span, Timeline, simulate
from kernels.serving.small_network import TOLERANCE, SmallNetwork
from kernels.serving.utilisation import busy_kernels
from warpcourse.bench import timing
from warpcourse.bench.benchmark import Table

BYTES = 2**28


def overlap(nbytes: int = BYTES, runs: int = 5) -> dict[str, Any]:
    """Time an array copied to the GPU, worked on and copied back: in one piece or chunks, over 1 to 8 streams.

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
            {"way": name, "ms": _length(median), "correct": correct, **_shares(median), "spans": _spans(median.spans)}
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


def _spans(spans: Iterable[Span], since: float = 0.0) -> list[list[Any]]:
    """List [operation's name, stream, engine, start, end] of each operation, in milliseconds."""
    return [[s.operation.name, s.operation.stream, s.engine, s.start - since, s.end - since] for s in spans]


CLIPS = {"320 × 192": (320, 192, 90), "1920 × 1080": (1920, 1080, 30)}
"""(width, height, frames) of the clips by name; a clip is repeated for as long as a measurement needs."""
SESSIONS = (1, 2, 4, 8)
NETWORK = SmallNetwork(layers=16, channels=48, size=128)
FRAMES = 120
RUNS_OF_PIPELINE = {
    "one after the other": (1, 1),
    "one after the other, NVDEC ahead": (1, 1),
    "pipeline, depth 1": (1, 1),
    "pipeline, depth 2": (2, 1),
    "pipeline, depth 4": (4, 1),
    "one after the other, batch 4": (1, 4),
    "pipeline, depth 2, batch 4": (2, 4),
}
"""(depth, batch) by name. In the first NVDEC begins a frame when it is asked for it; in all others it works ahead."""


@contextmanager
def _clips() -> Iterator[dict[str, Path]]:
    """Yield the clips by name, made by PyAV, each repeated."""
    with tempfile.TemporaryDirectory() as work:
        found = {}
        for name, (width, height, frames) in CLIPS.items():
            file = "small.h264" if width < 1000 else "hd.h264"
            once = Path(work) / file
            if video.make_clip(once, width=width, height=height, frames=frames) != "libx264":
                raise RuntimeError("PyAV's FFmpeg has no libx264, and NVDEC is measured on H.264; install PyAV's wheel")
            found[name] = Path(work) / f"long_{file}"
            video.repeat(once, 4 * 90 // frames, found[name])
        yield found


def preprocess_table() -> dict[str, Any]:
    """Time the kernels that make planes of an HD frame, for a small network and in full size, timed in turns.

    Rows: kernel, rows, columns, seconds, gbps (frame read and planes written, each byte once), correct.
    """
    cupy = timing.cupy_on_gpu()
    nv12 = np.random.default_rng(11).integers(0, 256, (1620, 1920), np.uint8)
    frames = [cupy.asarray(np.roll(nv12, i, axis=1)) for i in range(16)]
    rows: list[dict[str, Any]] = []
    for size in ((224, 224), (1080, 1920)):
        outputs = [cupy.empty((3, *size), np.float32) for _ in frames]
        expected = preprocess.by_numpy(cupy.asnumpy(frames[1]), *size)
        candidates, correct = {}, {}
        for name in preprocess.KERNELS:
            prepare = preprocess.Preprocess(kernel=name)
            outputs[1].fill(np.nan)
            prepare(frames[1], outputs[1])
            # Coordinates near 2000 have 13 bits of fraction in float32; between 0 and 255 that is 4e-4 of a deviation.
            correct[name] = bool(np.abs(cupy.asnumpy(outputs[1]) - expected).max() < 1e-3)
            language = prepare.kernel.language
            prepare.scale, prepare.shift = (timing.native(language, x) for x in (prepare.scale, prepare.shift))
            pairs = zip(frames, outputs, strict=True)
            given = [(timing.native(language, frame), timing.native(language, out)) for frame, out in pairs]
            candidates[name] = timing.Candidate(prepare, given)
        for name, timed in timing.time_together(candidates).items():
            moved = nv12.nbytes + outputs[0].nbytes
            row = {"kernel": name, "rows": size[0], "columns": size[1], "seconds": timed.seconds}
            rows.append(row | {"gbps": timed.bandwidth(moved), "correct": correct[name]})
    return {"frame": "1920 × 1080", "rows": rows}


def nvdec() -> dict[str, Any]:
    """Measure frames per second that NVDEC decodes from H.264: of one video, and of several at once, a thread each.

    Counted between the last thread's tenth frame and the first one's last frame, so that neither start nor end counts.
    Rows: clip, sessions, frames_per_second.
    """
    timing.cupy_on_gpu()
    rows = []
    with _clips() as clips:
        for name, path in clips.items():
            for sessions in SESSIONS:
                rate = _rate(_decode_together(path, sessions))
                rows.append({"clip": name, "sessions": sessions, "frames_per_second": rate})
    return {"codec": "H.264", "rows": rows}


def _rate(stamps: list[list[float]]) -> float:
    """Return the frames per second of all sessions, while each is between its tenth frame and its last."""
    begin, end = max(one[10] for one in stamps), min(one[-1] for one in stamps)
    if end <= begin:
        raise RuntimeError("a session ended before another had ten frames; measure where nothing else runs")
    return sum(begin < stamp <= end for one in stamps for stamp in one) / (end - begin)


def _decode_together(path: Path, sessions: int) -> list[list[float]]:
    """Return when each session had each of its frames, in seconds."""
    stamps: list[list[float]] = [[] for _ in range(sessions)]
    together = threading.Barrier(sessions)

    def decode(mine: list[float]) -> None:
        for _ in video.frames_on_nvdec(path):
            if not mine:
                together.wait(30)
            mine.append(time.perf_counter())

    threads = [threading.Thread(target=decode, args=(one,)) for one in stamps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not all(len(one) > 20 for one in stamps):
        raise RuntimeError(f"decoders ended after {[len(one) for one in stamps]} frames; 20 are needed to tell a rate")
    return stamps


def pipeline(frames: int = FRAMES) -> dict[str, Any]:
    """Decode, preprocess and infer 1080p frames: one after the other, and pipelined with 1 to 4 buffers.

    All answers must be the same bit by bit, and the first four NumPy's. Rows: milliseconds per frame (the better of
    two runs), those that the model predicts from the first way's stages, busy times, spans of 8 frames in the middle.
    """
    timing.cupy_on_gpu()
    rows: list[dict[str, Any]] = []
    answers: np.ndarray | None = None
    stages: dict[int, Stages] = {}
    with _clips() as clips:
        for name, (depth, batch) in RUNS_OF_PIPELINE.items():
            gpu = PipelineOnGpu(clips["1920 × 1080"], frames, NETWORK, depth=depth, batch=batch, ahead=bool(rows))
            gpu.run(_program(name, 2 * WARM_UP, Stages(0, 0, 0), depth, batch))
            runs = [gpu.run(_program(name, frames, Stages(0, 0, 0), depth, batch)) for _ in range(2)]
            best = min(runs, key=_length)
            if batch not in stages:
                stages[batch] = _stages(best)
            if answers is None:
                answers, expected = gpu.answers.copy(), gpu.expected(4)
                close = float(np.abs(answers[:4] - expected).max() / np.abs(expected).max())
            predicted = simulate(_program(name, frames, stages[batch], depth, batch)(None)).end
            row = {"way": name, "depth": depth, "batch": batch, "ms_per_frame": _length(best) / frames}
            row |= {"predicted_ms_per_frame": predicted / frames, "same": bool(np.array_equal(answers, gpu.answers))}
            row |= {"from_numpy": close, "correct": row["same"] and close < TOLERANCE}
            row |= {"decode_call_ms_per_frame": best.busy(DECODE_CALL) / frames}
            row |= {"sms_ms_per_frame": best.busy("SMs") / frames, "spans": _middle(best, frames)}
            rows.append(row)
    return {"clip": "1920 × 1080", "frames": frames, "stages_ms": vars(stages[1]), "rows": rows}


def _program(name: str, frames: int, stages: Stages, depth: int, batch: int) -> Callable[[Any], Schedule]:
    if name.startswith("pipeline"):
        return lambda actions: pipelined(frames, stages, depth=depth, batch=batch, actions=actions)
    return lambda actions: one_after_the_other(frames, stages, batch=batch, actions=actions)


def _stages(timeline: Timeline) -> Stages:
    """Return the median time of each stage; host work between them is not in them."""
    times: dict[str, list[float]] = {}
    for span in timeline.spans:
        times.setdefault(span.operation.name.split()[0], []).append(span.end - span.start)
    ms = {stage: float(np.median(of_stage)) for stage, of_stage in times.items()}
    return Stages(decode=ms["decode"], preprocess=ms["preprocess"], infer=ms["infer"], answers=ms["answer"])


def _middle(timeline: Timeline, frames: int) -> list[list[Any]]:
    """Return the spans of eight frames in the middle, from the first one's start."""
    begin = timeline.of(f"decode {frames // 2}").start
    end = timeline.of(f"decode {min(frames - 1, frames // 2 + 8)}").start
    return _spans((s for s in timeline.spans if s.engine and s.start >= begin and s.end <= end), begin)


def _planes(row: dict[str, Any]) -> str:
    return f"{row['columns']} × {row['rows']}"


MEASUREMENTS: dict[str, Callable[[], Any]] = {
    "overlap": overlap,
    "preprocess": preprocess_table,
    "nvdec": nvdec,
    "pipeline": pipeline,
}
TABLES = {
    "overlap": Table.of_rows(
        "{bytes:,} bytes there and back",
        {"way": "way", "ms": lambda row: row["ms"], "copy and kernel, ms": lambda row: row["copy_and_kernel_ms"]}
        | {"both copies, ms": lambda row: row["both_copies_ms"], "right": "correct"},
        lambda value: {"ms": {r["way"]: r["ms"] for r in value["rows"]}},
    ),
    "preprocess": Table.of_rows(
        "NV12 of {frame} to planes",
        {"kernel": "kernel", "planes": _planes, "µs": "seconds", "GB/s": "gbps", "right": "correct"},
        lambda value: {"seconds": {f"{r['kernel']}, {_planes(r)}": r["seconds"] for r in value["rows"]}},
    ),
    "nvdec": Table.of_rows(
        "NVDEC, {codec}",
        {"clip": "clip", "videos at once": "sessions", "frames/s": "frames_per_second"},
        lambda value: {
            "frames_per_second": {f"{r['clip']}, {r['sessions']}": r["frames_per_second"] for r in value["rows"]}
        },
    ),
    "pipeline": Table.of_rows(
        "{frames} frames of {clip}: decode, preprocess, infer",
        {"way": "way", "ms per frame": lambda row: row["ms_per_frame"]}
        | {"predicted": "predicted_ms_per_frame", "right": "correct"},
        lambda value: {"ms_per_frame": {r["way"]: r["ms_per_frame"] for r in value["rows"]}},
    ),
}

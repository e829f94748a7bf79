"""Stages of the pipeline on this machine, GPU or not: frames decoded by the CPU and timed, planes by the kernel.

Times are this machine's CPU's and are labelled so. Planes are right on any backend; how long a GPU takes for them is
in the recordings.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernels.serving.pipeline import Stages
from kernels.serving.preprocess import Preprocess
from kernels.serving.video import frames_on_cpu
from warplab.bench import timing
from warplab.dropin import choice


@dataclass(frozen=True)
class DecodedHere:
    """Frames (NV12) of a clip, and the milliseconds that the CPU took for each. `label`: whose times they are."""

    frames: tuple[np.ndarray, ...]
    ms: tuple[float, ...]
    label: str

    @property
    def median_ms(self) -> float:
        return statistics.median(self.ms)


def decode_here(clip: str | Path) -> DecodedHere:
    """Decode a clip by FFmpeg on one thread of this CPU. ValueError for a clip without frames."""
    frames, ms, last = [], [], time.perf_counter()
    for frame in frames_on_cpu(clip):
        now = time.perf_counter()
        frames.append(frame)
        ms.append(1e3 * (now - last))
        last = time.perf_counter()
    if not frames:
        raise ValueError(f"{clip} has no frames; make one with make_clip")
    return DecodedHere(tuple(frames), tuple(ms), f"decoded by FFmpeg on one thread of this CPU, {timing.host()['cpu']}")


def prepare_here(frames: Sequence[np.ndarray], rows: int, columns: int, kernel: str = "cuda_preprocess") -> np.ndarray:
    """The planes of frames, by the kernel on the active backend: float32, (frames, 3, rows, columns)."""
    cp: Any = choice.load("cp")
    prepare, planes = Preprocess(kernel=kernel), cp.zeros((len(frames), 3, rows, columns), np.float32)
    for i, frame in enumerate(frames):
        prepare(cp.asarray(frame), planes[i])
    return cp.asnumpy(planes)


def stages_with(decoded: DecodedHere, others: Stages, copy: float) -> Stages:
    """Stages in which this CPU decodes: `others`, such as a recorded GPU's, with this decode time and copies of `copy`
    milliseconds. Use them with decoder="CPU".
    """
    return replace(others, decode=decoded.median_ms, copy=copy)

"""A video pipeline as a schedule: decode, preprocess, infer, each stage in a stream of its own.

        NVDEC                 SMs                      SMs                   D2H
    decode frame i --> frame[i % depth] --> tensor[b % depth] --> answer[b % depth] --> host
                             \\_ events forwards: "it is there" _/
                             \\_ events backwards: "it is free" _/

A stage hands its result on in a ring of `depth` buffers. An event tells the next stage that a buffer is filled, another
tells the stage before that it may be filled again. This is the shape of NVIDIA's DeepStream (decoder, nvstreammux that
makes batches, nvinfer that prepares and infers), where each stage is a GStreamer element with a pool of buffers.
Where the CPU decodes, the host thread fills a ring of pinned buffers, and frames are copied to the device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernels.serving.streams import Schedule

DECODERS = ("NVDEC", "CPU")
Actions = Callable[[str, int], Callable[[], object] | None]
"""actions(stage, number of the frame or batch) -> what queues it on a GPU; None: nothing does."""


@dataclass(frozen=True)
class Stages:
    """How long each stage takes, in milliseconds: decode, copy (CPU only) and preprocess of one frame, infer and the
    copy of the answers of one batch. `share`: of the SMs that preprocess and infer fill.
    """

    decode: float
    preprocess: float
    infer: float
    copy: float = 0.0
    answers: float = 0.0
    preprocess_share: float = 1.0
    infer_share: float = 1.0

    def slowest(self, batch: int = 1, decoder: str = "NVDEC") -> float:
        """Milliseconds per frame of the busiest engine: what no pipeline can beat."""
        sms = self.preprocess * self.preprocess_share + self.infer * self.infer_share / batch
        return max(self.decode, sms, self.answers / batch, self.copy if decoder == "CPU" else 0.0)


def pipelined(
    frames: int,
    stages: Stages,
    *,
    depth: int = 2,
    batch: int = 1,
    decoder: str = "NVDEC",
    actions: Actions | None = None,
) -> Schedule:
    """The pipeline for so many frames, with `depth` buffers between stages; buffers hold a batch of frames.

    The schedule has no race; leave out one wait (`schedule.without`) and it has. ValueError for a number of frames that
    is no multiple of `batch`, a depth or batch below 1, or another decoder than "NVDEC" or "CPU".
    """
    _check(frames, depth, batch, decoder)
    schedule = Schedule(non_blocking=("decode", "preprocess", "infer"))
    act = actions or _none
    for i in range(frames):
        slot, b = i % (depth * batch), i // batch
        _decode(schedule, i, slot, depth * batch, stages, decoder, act)
        if i % batch == 0 and b >= depth:
            schedule.wait(f"inferred {b - depth}", "preprocess")  # the tensor is free again
        schedule.wait(f"decoded {i}", "preprocess")
        schedule.kernel(
            f"preprocess {i}",
            "preprocess",
            ms=stages.preprocess,
            reads=f"frame[{slot}]",
            writes=f"tensor[{b % depth}][{i % batch}]",
            share=stages.preprocess_share,
            action=act("preprocess", i),
        )
        schedule.record(f"preprocessed {i}", "preprocess")
        if i % batch == batch - 1:
            _infer(schedule, b, i, depth, batch, stages, act)
    schedule.synchronize(stream="infer")
    schedule.host("read the answers", ms=0, reads=[f"host answer {b}" for b in range(frames // batch)], action=_nothing)
    return schedule


def _decode(schedule: Schedule, i: int, slot: int, slots: int, stages: Stages, decoder: str, act: Any) -> None:
    again = i >= slots  # the buffer was used before
    if decoder == "NVDEC":
        if again:
            schedule.wait(f"preprocessed {i - slots}", "decode")  # the frame is free again
        schedule.decode(f"decode {i}", "decode", ms=stages.decode, writes=f"frame[{slot}]", action=act("decode", i))
    else:
        if again:
            schedule.synchronize(event=f"decoded {i - slots}")  # the pinned buffer was copied: fill it again
        schedule.host(f"decode {i}", ms=stages.decode, writes=f"host frame[{slot}]", action=act("decode", i))
        if again:
            schedule.wait(f"preprocessed {i - slots}", "decode")
        schedule.h2d(f"frame[{slot}]", "decode", ms=stages.copy, name=f"copy {i}", action=act("copy", i))
    schedule.record(f"decoded {i}", "decode")


def _infer(schedule: Schedule, b: int, i: int, depth: int, batch: int, stages: Stages, act: Any) -> None:
    schedule.wait(f"preprocessed {i}", "infer")
    schedule.kernel(
        f"infer {b}",
        "infer",
        ms=stages.infer,
        reads=[f"tensor[{b % depth}][{j}]" for j in range(batch)],
        writes=f"answer[{b % depth}]",
        share=stages.infer_share,
        action=act("infer", b),
    )
    schedule.record(f"inferred {b}", "infer")
    schedule.d2h(
        f"answer[{b % depth}]",
        "infer",
        ms=stages.answers,
        target=f"host answer {b}",
        name=f"answer {b}",
        action=act("answer", b),
    )


def one_after_the_other(
    frames: int, stages: Stages, *, batch: int = 1, decoder: str = "NVDEC", actions: Actions | None = None
) -> Schedule:
    """The same work in one stream, with one buffer per frame of a batch; the host waits after each batch."""
    _check(frames, 1, batch, decoder)
    schedule = Schedule()
    act = actions or _none
    for i in range(frames):
        slot, b = i % batch, i // batch
        if decoder == "NVDEC":
            schedule.decode(f"decode {i}", 0, ms=stages.decode, writes=f"frame[{slot}]", action=act("decode", i))
        else:
            schedule.host(f"decode {i}", ms=stages.decode, writes=f"host frame[{slot}]", action=act("decode", i))
            schedule.h2d(f"frame[{slot}]", 0, ms=stages.copy, name=f"copy {i}", action=act("copy", i))
        schedule.kernel(
            f"preprocess {i}",
            0,
            ms=stages.preprocess,
            reads=f"frame[{slot}]",
            writes=f"tensor[0][{slot}]",
            share=stages.preprocess_share,
            action=act("preprocess", i),
        )
        if slot == batch - 1:
            tensors = [f"tensor[0][{j}]" for j in range(batch)]
            schedule.kernel(
                f"infer {b}",
                0,
                ms=stages.infer,
                reads=tensors,
                writes="answer[0]",
                share=stages.infer_share,
                action=act("infer", b),
            )
            schedule.d2h(
                "answer[0]",
                0,
                ms=stages.answers,
                target=f"host answer {b}",
                name=f"answer {b}",
                action=act("answer", b),
            )
            schedule.synchronize(stream=0)
    schedule.host("read the answers", ms=0, reads=[f"host answer {b}" for b in range(frames // batch)], action=_nothing)
    return schedule


def _none(stage: str, i: int) -> None:
    """No action: a schedule for virtual time."""


def _nothing() -> None:
    """The answers are in host memory; whoever runs the schedule reads them."""


def _check(frames: int, depth: int, batch: int, decoder: str) -> None:
    if decoder not in DECODERS:
        raise ValueError(f"decoder is 'NVDEC' or 'CPU', not {decoder!r}")
    if frames < 1 or depth < 1 or batch < 1 or frames % batch:
        raise ValueError(
            f"{frames} frames in batches of {batch} with depth {depth}: all at least 1, and frames a multiple of batch"
        )

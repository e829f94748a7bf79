"""A video pipeline as a schedule: decode, preprocess, infer, each stage in a stream of its own.

        NVDEC                 SMs                      SMs                   D2H
    decode frame i --> frame[i % depth] --> tensor[b % depth] --> answer[b % depth] --> host
                             \\_ events forwards: "it is there" _/
                             \\_ events backwards: "it is free" _/

A stage hands its result on in a ring of `depth` buffers. An event tells the next stage that a buffer is filled, another
tells the stage before that it may be filled again. This is the shape of NVIDIA's DeepStream (decoder, nvstreammux that
makes batches, nvinfer that prepares and infers), where each stage is a GStreamer element with a pool of buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernels.serving.streams.schedule import Schedule

Actions = Callable[[str, int], Callable[[], object] | None]
"""actions(stage, number of the frame or batch) -> what queues it on a GPU; None: nothing does."""


@dataclass(frozen=True)
class Stages:
    """How long each stage takes, in milliseconds: decode and preprocess of one frame, infer and the copy of the
    answers of one batch. `share`: of the SMs that preprocess and infer fill.
    """

    decode: float
    preprocess: float
    infer: float
    answers: float = 0.0
    preprocess_share: float = 1.0
    infer_share: float = 1.0

    def slowest(self, batch: int = 1) -> float:
        """Milliseconds per frame of the busiest engine: what no pipeline can beat."""
        sms = self.preprocess * self.preprocess_share + self.infer * self.infer_share / batch
        return max(self.decode, sms, self.answers / batch)


def pipelined(
    frames: int,
    stages: Stages,
    *,
    depth: int = 2,
    batch: int = 1,
    actions: Actions | None = None,
) -> Schedule:
    """The pipeline for so many frames, with `depth` buffers between stages; buffers hold a batch of frames.

    The schedule has no race; leave out one wait (`schedule.without`) and it has. ValueError for a number of frames that
    is no multiple of `batch`, and for a depth or batch below 1.
    """
    _check(frames, depth, batch)
    schedule = Schedule(non_blocking=("decode", "preprocess", "infer"))
    act = actions or _none
    for i in range(frames):
        slot, b = i % (depth * batch), i // batch
        if i >= depth * batch:
            schedule.wait(f"preprocessed {i - depth * batch}", "decode")  # the frame is free again
        schedule.decode(f"decode {i}", "decode", ms=stages.decode, writes=f"frame[{slot}]", action=act("decode", i))
        schedule.record(f"decoded {i}", "decode")
        if i % batch == 0 and b >= depth:
            schedule.wait(f"inferred {b - depth}", "preprocess")  # the tensor is free again
        schedule.wait(f"decoded {i}", "preprocess")
        _preprocess(schedule, "preprocess", i, slot, b % depth, batch, stages, act)
        schedule.record(f"preprocessed {i}", "preprocess")
        if i % batch == batch - 1:
            schedule.wait(f"preprocessed {i}", "infer")
            _infer(schedule, "infer", b, b % depth, batch, stages, act)
            schedule.record(f"inferred {b}", "infer")
            _answer(schedule, "infer", b, b % depth, stages, act)
    schedule.synchronize(stream="infer")
    schedule.host("read the answers", ms=0, reads=[f"host answer {b}" for b in range(frames // batch)], action=_nothing)
    return schedule


def _preprocess(
    schedule: Schedule, stream: str | int, i: int, slot: int, ring: int, batch: int, stages: Stages, act: Actions
) -> None:
    schedule.kernel(
        f"preprocess {i}",
        stream,
        ms=stages.preprocess,
        reads=f"frame[{slot}]",
        writes=f"tensor[{ring}][{i % batch}]",
        share=stages.preprocess_share,
        action=act("preprocess", i),
    )


def _infer(schedule: Schedule, stream: str | int, b: int, ring: int, batch: int, stages: Stages, act: Actions) -> None:
    schedule.kernel(
        f"infer {b}",
        stream,
        ms=stages.infer,
        reads=[f"tensor[{ring}][{j}]" for j in range(batch)],
        writes=f"answer[{ring}]",
        share=stages.infer_share,
        action=act("infer", b),
    )


def _answer(schedule: Schedule, stream: str | int, b: int, ring: int, stages: Stages, act: Actions) -> None:
    target, name = f"host answer {b}", f"answer {b}"
    schedule.d2h(f"answer[{ring}]", stream, ms=stages.answers, target=target, name=name, action=act("answer", b))


def one_after_the_other(frames: int, stages: Stages, *, batch: int = 1, actions: Actions | None = None) -> Schedule:
    """The same work in one stream, with one buffer per frame of a batch; the host waits after each batch."""
    _check(frames, 1, batch)
    schedule = Schedule()
    act = actions or _none
    for i in range(frames):
        slot, b = i % batch, i // batch
        schedule.decode(f"decode {i}", 0, ms=stages.decode, writes=f"frame[{slot}]", action=act("decode", i))
        _preprocess(schedule, 0, i, slot, 0, batch, stages, act)
        if slot == batch - 1:
            _infer(schedule, 0, b, 0, batch, stages, act)
            _answer(schedule, 0, b, 0, stages, act)
            schedule.synchronize(stream=0)
    schedule.host("read the answers", ms=0, reads=[f"host answer {b}" for b in range(frames // batch)], action=_nothing)
    return schedule


def _none(stage: str, i: int) -> None:
    """No action: a schedule for virtual time."""


def _nothing() -> None:
    """The answers are in host memory; whoever runs the schedule reads them."""


def _check(frames: int, depth: int, batch: int) -> None:
    if frames < 1 or depth < 1 or batch < 1 or frames % batch:
        raise ValueError(
            f"{frames} frames in batches of {batch} with depth {depth}: all at least 1, and frames a multiple of batch"
        )

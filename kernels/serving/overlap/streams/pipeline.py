"""A video pipeline as a schedule: decode, preprocess, infer, each stage in a stream of its own.

        NVDEC                 SMs                      SMs                   D2H
    decode frame i --> frame[i % depth] --> tensor[b % depth] --> answer[b % depth] --> host
                             \\_ events forwards: "it is there" _/
                             \\_ events backwards: "it is free" _/

A stage hands its result on in a ring of `depth` buffers. An event tells the next stage that a buffer is filled, another
tells the stage before that it may be filled again. This is the shape of NVIDIA's DeepStream (decoder, nvstreammux that
makes batches, nvinfer that prepares and infers), where each stage is a GStreamer element with a pool of buffers.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kernels.serving.overlap.streams.schedule import Schedule, Stream

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
        """Return the milliseconds per frame of the busiest engine: what no pipeline can beat."""
        sms = self.preprocess * self.preprocess_share + self.infer * self.infer_share / batch
        return max(self.decode, sms, self.answers / batch)


def pipelined(
    frames: int, stages: Stages, *, depth: int = 2, batch: int = 1, actions: Actions | None = None
) -> Schedule:
    """Return the pipeline for so many frames, with `depth` buffers between stages; buffers hold a batch of frames.

    The schedule has no race; leave out one wait (`schedule.without`) and it has. ValueError for a number of frames that
    is no multiple of `batch`, and for a depth or batch below 1.
    """
    return _issued(frames, stages, depth, batch, actions, overlapped=True)


def one_after_the_other(frames: int, stages: Stages, *, batch: int = 1, actions: Actions | None = None) -> Schedule:
    """Return the same work in one stream, with one buffer per frame of a batch; the host waits after each batch."""
    return _issued(frames, stages, 1, batch, actions, overlapped=False)


def _issued(
    frames: int, stages: Stages, depth: int, batch: int, actions: Actions | None, *, overlapped: bool
) -> Schedule:
    """Return the schedule: a stream per stage and events between them if `overlapped`, else stream 0 and no event."""
    if frames < 1 or depth < 1 or batch < 1 or frames % batch:
        raise ValueError(
            f"{frames} frames in batches of {batch} with depth {depth}: all at least 1, and frames a multiple of batch"
        )
    decode, preprocess, infer = streams = ("decode", "preprocess", "infer") if overlapped else (0, 0, 0)
    schedule = Schedule(non_blocking=streams if overlapped else ())
    act = actions or (lambda stage, number: None)

    def record(event: str, stream: Stream) -> None:
        if overlapped:
            schedule.record(event, stream)

    def wait(event: str, stream: Stream) -> None:
        if overlapped:
            schedule.wait(event, stream)

    for i in range(frames):
        b, place = divmod(i, batch)
        frame, tensor, answer = f"frame[{i % (depth * batch)}]", f"tensor[{b % depth}]", f"answer[{b % depth}]"
        if i >= depth * batch:
            wait(f"preprocessed {i - depth * batch}", decode)  # the frame is free again
        schedule.decode(f"decode {i}", decode, ms=stages.decode, writes=frame, action=act("decode", i))
        record(f"decoded {i}", decode)
        if place == 0 and b >= depth:
            wait(f"inferred {b - depth}", preprocess)  # the tensor is free again
        wait(f"decoded {i}", preprocess)
        schedule.kernel(
            f"preprocess {i}",
            preprocess,
            ms=stages.preprocess,
            reads=frame,
            writes=f"{tensor}[{place}]",
            share=stages.preprocess_share,
            action=act("preprocess", i),
        )
        record(f"preprocessed {i}", preprocess)
        if place < batch - 1:
            continue
        wait(f"preprocessed {i}", infer)
        schedule.kernel(
            f"infer {b}",
            infer,
            ms=stages.infer,
            reads=[f"{tensor}[{j}]" for j in range(batch)],
            writes=answer,
            share=stages.infer_share,
            action=act("infer", b),
        )
        record(f"inferred {b}", infer)
        target, name = f"host answer {b}", f"answer {b}"
        schedule.d2h(answer, infer, ms=stages.answers, target=target, name=name, action=act("answer", b))
        if not overlapped:
            schedule.synchronize(stream=0)
    if overlapped:
        schedule.synchronize(stream=infer)
    # The answers are in host memory; whoever runs the schedule reads them.
    answers = [f"host answer {b}" for b in range(frames // batch)]
    schedule.host("read the answers", ms=0, reads=answers, action=lambda: None)
    return schedule

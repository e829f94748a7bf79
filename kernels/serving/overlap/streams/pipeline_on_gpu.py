"""The stages of the video pipeline on a GPU: what each operation of a pipeline's schedule does there.

NVDEC decodes into a ring of frames, preprocess.cu prepares them in a ring of batches, `SmallNetwork` answers.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kernels.serving.overlap.streams.execution import execute
from kernels.serving.overlap.streams.preprocess import Preprocess, by_numpy
from kernels.serving.overlap.streams.schedule import Schedule
from kernels.serving.overlap.streams.timeline import Timeline
from kernels.serving.overlap.streams.video import frames_on_nvdec
from kernels.serving.small_network import BLOCK, SmallNetwork, on_device
from warpcourse.bench import timing

WARM_UP = 8  # frames decoded before a schedule begins: the decoder is ready, and gives each frame in its turn


class PipelineOnGpu:
    """Buffers and actions for `frames` frames of a clip, in batches, with `depth` buffers between stages.

    `run(schedule_of)`: `schedule_of(actions)` is the schedule to run; afterwards `answers` holds what the network
    answered, [frames, classes]. The clip has WARM_UP frames more, which are decoded before. `ahead`: whether NVDEC
    works ahead, as `frames_on_nvdec` says.
    """

    def __init__(
        self, clip: str | Path, frames: int, network: SmallNetwork, *, depth: int, batch: int, ahead: bool = True
    ) -> None:
        cupy = self.cupy = timing.cupy_on_gpu()
        self.clip, self.network, self.depth, self.batch = clip, network, depth, batch
        self.ahead = ahead
        self.prepare, self.weights = Preprocess(), on_device(network)
        self.stream = cupy.cuda.Stream(non_blocking=True)
        decoded = self._decoded()
        self.frames = [cupy.empty(next(decoded).shape, np.uint8) for _ in range(depth * batch)]
        edge, classes = network.size, network.classes
        self.tensors = [cupy.empty((batch, 3, edge, edge), np.float32) for _ in range(depth)]
        self.inner = [cupy.empty((batch, network.channels, edge, edge), np.float32) for _ in range(2)]
        self.device_answers = [cupy.empty((batch, classes), np.float32) for _ in range(depth)]
        pinned = cupy.cuda.alloc_pinned_memory(4 * frames * classes)
        self.answers = np.frombuffer(pinned, np.float32, frames * classes).reshape(frames, classes)
        self.decoded: Iterator[Any] = decoded

    def run(self, schedule_of: Callable[[Any], Schedule]) -> Timeline:
        """Run it once from the clip's beginning."""
        self.answers.fill(np.nan)
        self.decoded = self._decoded()
        for _ in range(WARM_UP):
            next(self.decoded)
        schedule = schedule_of(self.action)
        decoding = next(o.stream for o in schedule if o.kind == "decode")
        timeline = execute(schedule, {decoding: self.stream})
        self.decoded.close()  # type: ignore[attr-defined]  # a generator: the decoder goes now
        return timeline

    def expected(self, frames: int) -> np.ndarray:
        """Return what NumPy answers for the first frames: [frames, classes], from the frames as NVDEC decodes them."""
        decoded = self._decoded()
        nv12 = [self.cupy.asnumpy(frame) for frame, _ in zip(decoded, range(WARM_UP + frames), strict=False)][WARM_UP:]
        images = np.stack([by_numpy(frame, self.network.size, self.network.size) for frame in nv12])
        return self.network.answer(images)

    def action(self, stage: str, i: int) -> Callable[[], object]:
        """Return what a stage does with frame i (decode, preprocess) or batch i (infer, answer)."""
        stages = {"decode": self._decode, "preprocess": self._preprocess, "infer": self._infer, "answer": self._answer}
        return partial(stages[stage], i)

    def _decoded(self) -> Iterator[Any]:
        return frames_on_nvdec(self.clip, self.stream, ahead=self.ahead)

    def _decode(self, i: int) -> None:
        """Wait until NVDEC has the frame; the copy into the ring is queued behind the decoder's own."""
        frame = next(self.decoded)
        self.frames[i % len(self.frames)][...] = frame

    def _preprocess(self, i: int) -> None:
        self.prepare(self.frames[i % len(self.frames)], self.tensors[i // self.batch % self.depth][i % self.batch])

    def _infer(self, b: int) -> None:
        buffers = (self.tensors[b % self.depth], *self.inner, self.device_answers[b % self.depth])
        for layer in self.network.layer_launches(self.weights, buffers, self.batch):
            layer.kernel.launch(layer.grid, BLOCK, layer.arguments)

    def _answer(self, b: int) -> None:
        target, runtime = self.answers[b * self.batch : (b + 1) * self.batch], self.cupy.cuda.runtime
        source, stream = self.device_answers[b % self.depth], self.cupy.cuda.get_current_stream()
        runtime.memcpyAsync(target.ctypes.data, source.data.ptr, target.nbytes, runtime.memcpyDeviceToHost, stream.ptr)

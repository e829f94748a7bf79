"""The engine: a plan made ready to run. Weights on the device, one allocation for all tensors, one list of launches.

    engine = Engine(plan)
    probabilities = engine.run(images)

Everything that can be done once is done here: nothing is allocated, compiled or decided while it runs. On a GPU the
list is captured as a CUDA graph, so that a run costs the host one call. Sums are added in the same order always:
results are the same bits from run to run.
"""

import threading
from typing import Any

import numpy as np

from kernels.fusion import tactics
from kernels.fusion.plan.parallel import StreamedLayer, in_a_row, steps
from kernels.fusion.plan.plan import Plan, check
from kernels.fusion.plan.tuning import DTYPES, memory_shape
from kernels.fusion.tactics.layer import layers
from kernels.fusion.tactics.tactic import Call
from warplab import cp
from warplab.hardware import backend


class Engine:
    """`plan` on this machine. `cuda_graph`: whether to capture the launches; None: where there is a GPU.

    `side_by_side`: whether the captured graph lets launches run at once that need not wait for each other (`parallel`).
    `calls`: the launches of each layer; `launches`: all of them, in order. `weights_bytes`: of the device copies of
    weights as kernels read them. PlanError for a plan that cannot run here. Threads may `run` one engine, whose batches
    take turns; engines of their own do not wait for each other.
    """

    def __init__(self, plan: Plan, *, cuda_graph: bool | None = None, side_by_side: bool = False) -> None:
        check(plan)
        on_gpu = backend.name() == "gpu"
        if cuda_graph and not on_gpu:
            raise ValueError("the simulator has no CUDA graphs; leave cuda_graph out, or run on a GPU")
        self.plan = plan
        self._running = threading.Lock()
        self.memory = cp.empty(plan.memory.nbytes, np.uint8)
        self._arrays = {name: self._array(name) for name in plan.graph.tensors}
        self._write_constants()
        self.weights_bytes = 0
        self.calls = [self._bind(layer) for layer in plan.layers]
        self.launches: list[Call] = [call for calls in self.calls for call in calls]
        for call in self.launches:
            call.compile()
        self._graph = None
        if on_gpu if cuda_graph is None else cuda_graph:
            self._capture(steps(plan) if side_by_side else in_a_row(plan))

    def run(self, *inputs: Any) -> Any:
        """Return the graph's output, (samples, *shape), float32 on the host; a dictionary by name if there are several.

        `inputs`: one array (samples, *shape) for each of the graph's inputs, in their order, any number of samples:
        they run in batches of the plan's, the last one filled up with zeros. ValueError for arrays that do not fit.
        """
        arrays = self._checked(inputs)
        batch, count = self.plan.batch, len(arrays[0])
        results: dict[str, list[np.ndarray]] = {name: [] for name in self.plan.graph.outputs}
        for start in range(0, count, batch):
            with self._running:
                self.put(*(array[start : start + batch] for array in arrays))
                self.queue()
                for name, found in results.items():
                    found.append(self.tensor(name)[: count - start])
        whole = {name: np.concatenate(found) for name, found in results.items()}
        return whole if len(whole) > 1 else next(iter(whole.values()))

    def put(self, *inputs: np.ndarray) -> None:
        """Copy one batch of inputs, or less, to the device."""
        for name, array in zip(self.plan.graph.inputs, inputs, strict=True):
            full = np.zeros((self.plan.batch, *self.plan.graph.tensors[name].shape), np.float32)
            full[: len(array)] = array
            self._arrays[name].set(full.reshape(self._arrays[name].shape))

    def queue(self) -> None:
        """Queue one run of all launches on the current stream, on a GPU as the captured graph."""
        if self._graph is not None:
            self._graph.launch()
            return
        for call in self.launches:
            call.queue()

    def tensor(self, name: str) -> np.ndarray:
        """Return what a tensor's memory holds now, as it lies there, copied to the host."""
        return cp.asnumpy(self._arrays[name])

    def __str__(self) -> str:
        kernels = "\n".join(f"  {call.kernel}" for call in self.launches)
        return f"{len(self.launches)} launches, {self.memory.nbytes:,} bytes of tensors\n{kernels}"

    def _array(self, name: str) -> Any:
        tensor, batch = self.plan.graph.tensors[name], self.plan.batch
        start = self.plan.memory.offset(name)
        part = self.memory[start : start + batch * tensor.nbytes].view(DTYPES[tensor.dtype])
        return part.reshape(memory_shape(tensor, batch))

    def _bind(self, layer: Any) -> list[Call]:
        tactic = tactics.find(self.plan.choices[layer.node.name])
        weights = {name: cp.asarray(array) for name, array in tactic.weights(layer).items()}
        self.weights_bytes += sum(array.nbytes for array in weights.values())
        inputs = [self._arrays[name] for name in layer.node.inputs]
        outputs = [self._arrays[part.tensor] for part in layer.node.outputs]
        return tactic.bind(layer, inputs, outputs, weights)

    def _write_constants(self) -> None:
        for layer in layers(self.plan.graph, self.plan.batch):
            if layer.node.op == "constant":
                array = self._arrays[layer.node.output]
                value = np.repeat(layer.node.weights["value"][None], self.plan.batch, axis=0)
                if layer.writes[0][1].layout == "NHWC" and value.ndim == 4:
                    value = value.transpose(0, 2, 3, 1)
                array.set(np.ascontiguousarray(value.reshape(array.shape)))

    def _checked(self, inputs: tuple) -> list[np.ndarray]:
        graph = self.plan.graph
        if len(inputs) != len(graph.inputs):
            raise ValueError(f"the engine takes one array for each of {', '.join(graph.inputs)}; got {len(inputs)}")
        given = [np.asarray(cp.asnumpy(array)) for array in inputs]
        if odd := next((array.dtype for array in given if array.dtype.kind not in "fiub"), None):
            raise ValueError(f"the engine takes real numbers; an array holds {odd}")
        arrays = [array.astype(np.float32, copy=False) for array in given]
        for name, array in zip(graph.inputs, arrays, strict=True):
            shape = graph.tensors[name].shape
            if array.shape[1:] != shape or not len(array) or len(array) != len(arrays[0]):
                raise ValueError(
                    f"input {name!r} has the shape {array.shape}; it must be (samples, {', '.join(map(str, shape))}), "
                    "at least one sample, as many for each input"
                )
        return arrays

    def _capture(self, order: list[StreamedLayer]) -> None:
        """Capture the launches as a CUDA graph, after one plain run, which loads and compiles all there is to."""
        for array in (self._arrays[name] for name in self.plan.graph.inputs):
            array.fill(0)
        for call in self.launches:
            call.queue()
        cp.cuda.get_current_stream().synchronize()
        # The default stream cannot be captured.
        streams = [
            cp.cuda.Stream(non_blocking=True) for _ in range(1 + max((step.stream for step in order), default=0))
        ]
        done = [cp.cuda.Event(disable_timing=True) for _ in order]
        streams[0].begin_capture()
        start = cp.cuda.Event(disable_timing=True)
        start.record(streams[0])
        for stream in streams[1:]:  # a stream becomes a part of the capture by waiting for one that is
            stream.wait_event(start)
        for step in order:
            stream = streams[step.stream]
            for layer in step.waits:
                stream.wait_event(done[layer])
            with stream:
                for call in self.calls[step.layer]:
                    call.queue()
            done[step.layer].record(stream)
        for last in {step.stream: step for step in order}.values():  # all come together again
            if last.stream:
                streams[0].wait_event(done[last.layer])
        self._graph = streams[0].end_capture()

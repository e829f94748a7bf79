"""One convolution as a graph of cuDNN, and its execution plans.

    graph = ConvolutionGraph(conv, "forward", "NHWC", "float16", bias=True, relu=True)
    plan = graph.plans[0]                     # the heuristics' first choice
    graph.build(plan)                         # "ok", or why this plan cannot run
    graph.launch(plan, x, w, y, bias)         # queued on CuPy's current stream

A graph has tensors and operations; its execution plans are the algorithms (engines, with settings: knobs) that cuDNN's
heuristics propose for it. Source: cuDNN's documentation, "Graph API", and the samples of nvidia-cudnn-frontend.
"""

import contextlib
import functools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernels.convolution.cudnn import library
from kernels.convolution.cudnn.plan_table import OK, REDUCED
from kernels.convolution.definition.geometry import PASSES, Convolution, check_layout

MODES = ("A", "B", "FALLBACK")  # of the heuristics: quick, by a model of the kernels, and whatever surely runs
OTHER = ""  # in the place of a mode: engines that no mode proposes, with their default knobs
DTYPES = {"float16": "HALF", "float32": "FLOAT"}
RUNTIME_COMPILATION = "RUNTIME_COMPILATION"  # behaviour note of engines that generate and compile their kernel
NOTES = (
    "TENSOR_CORE",
    "DOWN_CONVERT_INPUTS",
    "REDUCED_PRECISION_REDUCTION",
    "NONDETERMINISTIC",
    "FFT",
    "WINOGRAD",
    "WINOGRAD_TILE_4x4",
    "WINOGRAD_TILE_6x6",
    "WINOGRAD_TILE_13x13",
)


@dataclass(frozen=True)
class Plan:
    """One execution plan. `id`: its rank over all modes; `proposed`: the mode that proposed it first, or OTHER.

    `engine`: the algorithm; `name`: with its settings, such as "eng45_k2=4_k5=3_k14=3"; `behavior`: cuDNN's
    behaviour notes. `index`: in the graph of that mode.
    """

    id: int
    proposed: str
    index: int
    engine: int
    name: str
    behavior: tuple[str, ...] = ()


class ConvolutionGraph:
    """A convolution for cuDNN, and the plans for it.

    `kind`: a name in `geometry.PASSES`; `layout`: "NCHW" or "NHWC", of filters too; `dtype`: "float16" or "float32", of
    all operands; sums are float32. `bias`, `relu`: what follows the forward pass in the same kernel. `bias_dtype`: that
    of the bias, by default `dtype`; float32 beside float16 has other plans. `tf32`: whether plans for float32 may round
    the factors to TF32's 10 bits and use tensor cores. `modes`: of the heuristics. `others`: whether `plans` goes on
    with the engines that no mode proposes, with their default knobs; but those that compile at run time.
    ValueError for other names; RuntimeError where there is no cuDNN or it has no plan.
    """

    def __init__(
        self,
        conv: Convolution,
        kind: str = "forward",
        layout: str = "NHWC",
        dtype: str = "float16",
        *,
        bias: bool = False,
        relu: bool = False,
        bias_dtype: str = "",
        tf32: bool = True,
        modes: Sequence[str] = MODES,
        others: bool = False,
    ) -> None:
        check_layout(layout)
        for name, value, known in (("kind", kind, PASSES), ("dtype", dtype, tuple(DTYPES))):
            if value not in known:
                raise ValueError(f"there is no {name} {value!r}; choose one of {', '.join(known)}")
        if (bias or relu) and kind != "forward":
            raise ValueError(f"bias and relu follow the forward pass; this is {kind}")
        self.conv, self.kind, self.layout, self.dtype = conv, kind, layout, dtype
        self.bias, self.relu, self.tf32 = bias, relu, tf32
        self._cudnn = library.frontend()
        self._io_type = getattr(self._cudnn.data_type, DTYPES[dtype])
        self._bias_type = getattr(self._cudnn.data_type, DTYPES[bias_dtype or dtype])
        self._others = others
        self._graphs = {mode: found for mode in modes if (found := self._planned(mode)) is not None}
        if not self._graphs:
            raise RuntimeError(f"cuDNN {library.version()} proposes no plan for {kind} of {conv}, {layout} {dtype}")

    @functools.cached_property
    def plans(self) -> list[Plan]:
        """Return what the heuristics propose, mode by mode, each plan once; then the other engines, if those are
        wanted."""
        found: dict[str, Plan] = {}
        for mode, (graph, _) in self._graphs.items():
            for index in range(graph.get_execution_plan_count()):
                plan = _plan(graph, mode, index)
                found.setdefault(plan.name, plan)
        if self._others:
            proposed = {plan.engine for plan in found.values()}
            self._graphs[OTHER] = self._planned_others(proposed)
            graph = self._graphs[OTHER][0]
            for plan in (_plan(graph, OTHER, index) for index in range(graph.get_execution_plan_count())):
                if RUNTIME_COMPILATION not in plan.behavior:  # half a second to two for each: only where proposed
                    found[plan.name] = plan
        return [replace(plan, id=rank) for rank, plan in enumerate(found.values())]

    def build(self, plan: Plan) -> str:
        """Compile or load a plan's kernels; "ok", or why it cannot run."""
        graph, _ = self._graphs[plan.proposed]
        try:
            graph.build_plan_at_index(plan.index)
        except (self._cudnn.cudnnGraphNotSupportedError, RuntimeError, ValueError) as error:
            if "Deselecting" in str(error):
                return "left out: computes float32 in TF32"
            return status_of(error)
        return OK

    def workspace_bytes(self, plan: Plan) -> int:
        """Return device memory that a call of a plan needs; of a plan that was built."""
        graph, _ = self._graphs[plan.proposed]
        return int(graph.get_workspace_size_plan_at_index(plan.index))

    def launch(self, plan: Plan, first: Any, second: Any, out: Any, bias: Any = None, workspace: Any = None) -> None:
        """Queue a built plan on CuPy's current stream, without any check.

        `first`, `second`, `out`: CuPy arrays: x, w, y, or dy, w, dx, or x, dy, dw. `bias`: of shape (K,), if the graph
        has one. `workspace`: uint8, of `workspace_bytes(plan)` or more.
        """
        graph, tensors = self._graphs[plan.proposed]
        arrays = (first, second, out, bias) if self.bias else (first, second, out)
        pointers = {tensor.get_uid(): array.data.ptr for tensor, array in zip(tensors, arrays, strict=True)}
        address = 0 if workspace is None else workspace.data.ptr
        graph.execute_plan_at_index(pointers, address, plan.index, library.handle())

    def numerical_notes(self, asked: Sequence[str] = NOTES) -> dict[int, tuple[str, ...]]:
        """Return which of the numerical notes `asked` cuDNN gives each plan, by its id.

        The frontend can leave plans out by a note but not name the notes of a plan: so each note is asked for in turn,
        in graphs of its own.
        """
        found: dict[int, list[str]] = {plan.id: [] for plan in self.plans}
        proposed = {plan.engine for plan in self.plans if plan.proposed != OTHER}
        for note in asked:
            for mode in self._graphs:
                filtered = self._planned_others(proposed) if mode == OTHER else self._planned(mode)
                graph = filtered[0]
                graph.deselect_numeric_notes([getattr(self._cudnn.numerical_note, note)])
                graph.deselect_workspace_greater_than(-1)  # so that no plan is built
                for plan in self.plans:
                    if plan.proposed == mode and _left_out(graph, plan.index):
                        found[plan.id].append(note)
        return {id_: tuple(notes) for id_, notes in found.items()}

    def _planned(self, mode: str) -> Any:
        """Return the graph with its plans of one mode, and its tensors in the order of `launch`; None where there are
        none."""
        graph, tensors = self._lowered()
        try:
            graph.create_execution_plans([getattr(self._cudnn.heur_mode, mode)])
        except self._cudnn.cudnnGraphNotSupportedError:
            return None
        self._leave_out_tf32(graph)
        return graph, tensors

    def _planned_others(self, proposed: Collection[int]) -> tuple[Any, tuple[Any, ...]]:
        """Do the same with a plan of each engine that is not in `proposed` and supports the graph."""
        graph, tensors = self._lowered()
        for engine in range(graph.get_engine_count()):
            if engine not in proposed:
                with contextlib.suppress(RuntimeError, self._cudnn.cudnnGraphNotSupportedError):
                    graph.create_execution_plan(engine, {})
        self._leave_out_tf32(graph)
        return graph, tensors

    def _leave_out_tf32(self, graph: Any) -> None:
        if self.dtype == "float32" and not self.tf32:
            graph.deselect_numeric_notes([getattr(self._cudnn.numerical_note, note) for note in REDUCED])

    def _lowered(self) -> tuple[Any, tuple[Any, ...]]:
        graph, tensors = self._graph()
        graph.validate()
        graph.build_operation_graph()
        return graph, tensors

    def _graph(self) -> tuple[Any, tuple[Any, ...]]:
        types, conv = self._cudnn.data_type, self.conv
        graph = self._cudnn.pygraph(
            io_data_type=self._io_type,
            intermediate_data_type=types.FLOAT,
            compute_data_type=types.FLOAT,
            handle=library.handle(),
        )
        sizes = {"x": conv.x_shape(), "w": conv.w_shape(), "y": conv.y_shape()}
        names = {"forward": "xwy", "backward_data": "ywx", "backward_filter": "xyw"}[self.kind]

        def tensor(name: str) -> Any:
            size = list(sizes[name])  # cuDNN names sizes as N C H W whatever the layout, which is in the strides
            return graph.tensor(name=name, dim=size, stride=strides(sizes[name], self.layout), data_type=self._io_type)

        first, second = map(tensor, names[:2])
        window = {name: list(getattr(conv, name)) for name in ("padding", "stride", "dilation")}
        added: tuple[Any, ...] = ()
        if self.kind == "forward":
            out = graph.conv_fprop(image=first, weight=second, **window)
        elif self.kind == "backward_data":
            out = graph.conv_dgrad(loss=first, filter=second, **window)
        else:
            out = graph.conv_wgrad(image=first, loss=second, **window)
        if self.bias:
            size = [1, conv.k, 1, 1]
            added = (graph.tensor(name="b", dim=size, stride=strides(size, self.layout), data_type=self._bias_type),)
            out = graph.bias(input=out, bias=added[0])
        if self.relu:
            out = graph.relu(input=out)
        size = sizes[names[2]]
        out.set_output(True).set_data_type(self._io_type)
        out.set_dim(list(size)).set_stride(strides(size, self.layout))
        return graph, (first, second, out, *added)


def _plan(graph: Any, mode: str, index: int) -> Plan:
    engine, _ = graph.get_engine_and_knobs_at_index(index)
    notes = sorted(note.name for note in graph.get_behavior_notes_for_plan_at_index(index))
    return Plan(index, mode, index, int(engine), graph.get_plan_name_at_index(index), tuple(notes))


def status_of(error: BaseException) -> str:
    """Return what an error of the frontend says, in short: cuDNN's status where it names one."""
    text = str(error).strip()
    named = re.search(r"CUDNN_STATUS_\w+", text)
    return named.group() if named else (text.splitlines() or [type(error).__name__])[-1][:120]


def strides(nchw: Sequence[int], layout: str) -> list[int]:
    """Return strides, in elements, of a tensor of sizes N C H W that lies in memory as `layout` says."""
    _, c, h, w = nchw
    return [c * h * w, h * w, w, 1] if layout == "NCHW" else [h * w * c, 1, w * c, c]


def _left_out(graph: Any, index: int) -> bool:
    """Return whether a note has left a plan out of a graph that allows no workspace, where no plan is ever built."""
    try:
        graph.build_plan_at_index(index)
    except Exception as error:  # of several types; the text tells them apart
        return "Deselecting" in str(error)
    return False

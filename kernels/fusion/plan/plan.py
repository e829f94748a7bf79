"""`Plan`: all that the engine needs: the optimised graph, a tactic for each layer, the memory plan, batch and device.

p = plan.build(graph, batch=1)                      # each layer's default tactic
p = plan.build(graph, batch=1, tuned=tune(graph))   # the fastest
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kernels.fusion import tactics
from kernels.fusion.graph import Graph
from kernels.fusion.plan import memory_plan
from kernels.fusion.plan.memory_plan import MemoryPlan
from kernels.fusion.plan.tuning import Tuned, capability, device
from kernels.fusion.tactics.layer import Layer, layers
from kernels.fusion.tactics.sources import MOST_ELEMENTS


class PlanError(ValueError):
    """A plan that cannot run here: the message says why, and what to do."""


@dataclass(frozen=True)
class Plan:
    """`choices`: by layer that needs a launch the name of its tactic. `device`: for which it was built."""

    graph: Graph
    batch: int
    choices: Mapping[str, str]
    memory: MemoryPlan
    device: str

    @property
    def layers(self) -> list[Layer]:
        """Return the layers that need a launch, in order."""
        return [layer for layer in layers(self.graph, self.batch) if layer.node.name in self.choices]

    def __str__(self) -> str:
        lines = [f"{self.graph.name}, batch {self.batch}, built for {self.device}: {len(self.choices)} layers launched"]
        lines += [f"  {name:<28} {tactic}" for name, tactic in self.choices.items()]
        return "\n".join([*lines, f"  {self.memory.nbytes:,} bytes of tensors"])


def build(
    graph: Graph,
    batch: int = 1,
    *,
    tuned: Tuned | None = None,
    choices: Mapping[str, str] | None = None,
    reuse: bool = True,
    side_by_side: bool = False,
) -> Plan:
    """Return the plan of a graph, optimised or not, for a batch.

    `tuned`: takes the fastest tactics. `choices`: by layer a tactic, before all others. `reuse`: whether tensors share
    memory; `side_by_side`: whether only those do for which no launch has to wait. Raise NoTactic for a layer that
    nothing can run, PlanError for a choice that cannot run it.
    """
    fastest = {**(tuned.choices if tuned else {}), **(choices or {})}
    chosen = {}
    for layer in layers(graph, batch):
        name = layer.node.name
        if layer.node.op in memory_plan.WITHOUT_LAUNCH:
            continue
        able = tactics.candidates(layer, capability())
        chosen[name] = fastest.get(name, able[0].name)
    made = Plan(graph, batch, chosen, memory_plan.plan(graph, batch, reuse=reuse, side_by_side=side_by_side), device())
    if unknown := [name for name in choices or {} if name not in chosen]:
        raise PlanError(f"there is no layer {unknown[0]!r} to choose a tactic for; there are {', '.join(chosen)}")
    check(made)
    return made


def check(plan: Plan) -> None:
    """Raise PlanError unless every layer has a tactic that can run it here, and its tensors lie where they can."""
    wanted = memory_plan.launched(plan.graph)
    if list(plan.choices) != wanted:
        odd = sorted(set(wanted) ^ set(plan.choices)) or wanted
        raise PlanError(f"the plan must name a tactic for each layer, in their order; look at {', '.join(odd[:4])}")
    for tensor in plan.graph.tensors.values():
        elements = plan.batch
        for extent in tensor.shape:
            elements *= extent
        if elements > MOST_ELEMENTS:
            raise PlanError(f"tensor {tensor.name!r} has {elements:,} elements; kernels count up to {MOST_ELEMENTS:,}")
    for layer in plan.layers:
        name = plan.choices[layer.node.name]
        try:
            tactic = tactics.find(name)
        except ValueError as error:
            raise PlanError(f"layer {layer.node.name!r}: {error}") from None
        why = "" if layer.node.op in tactic.ops else f"it runs {', '.join(tactic.ops)}"
        why = why or tactic.refuses(layer)
        have = capability()
        if not why and have is not None and have < tactic.capability:
            why = f"it needs compute capability {tactic.capability / 10}, and this device has {have / 10}"
        if why:
            raise PlanError(f"layer {layer.node.name!r} cannot run by the tactic {name!r}: {why}; build the plan again")
    try:
        memory_plan.check(plan.memory, plan.graph, plan.batch)
    except memory_plan.MemoryPlanError as error:
        raise PlanError(f"{error}; build the plan again") from None

"""The plan: a graph with a tactic for each layer and a place for each tensor; in a file, and run by the engine."""

from kernels.fusion.plan.engine import Engine
from kernels.fusion.plan.parallel import dependencies
from kernels.fusion.plan.plan import Plan, PlanError, build, check
from kernels.fusion.plan.plan_file import PlanFileError, load, save
from kernels.fusion.plan.tuning import device, tune

__all__ = ["Engine", "Plan", "PlanError", "PlanFileError", "build", "check", "dependencies"]
__all__ += ["device", "load", "save", "tune"]

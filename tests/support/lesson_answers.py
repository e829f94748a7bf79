"""Answers to the tasks of a lesson ("Your turn"): each lab has its own in tests/labs/NN_topic/answers.py."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from types import ModuleType

from warpcourse.bench.lab import Lab


@dataclass(frozen=True)
class Answers:
    """`right`, and `also`, unlike it: accepted. `wrong`: source -> what the check must say of it. `shows`: what the
    check prints of a right one."""

    right: str
    wrong: dict[str, str]
    shows: str = ""
    also: tuple[str, ...] = ()


def answers(lab: Lab) -> dict[str, Answers]:
    """The answers of a lab by the id of the answer cell, in the order of the lesson."""
    return load(lab).ANSWERS


def load(lab: Lab) -> ModuleType:
    """The lab's answers.py, whose folder's name no import statement can say."""
    spec = importlib.util.spec_from_file_location(f"answers_{lab.slug}", lab.tests / "answers.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def one_line(head: str, result: str) -> str:
    """A function that returns an expression."""
    return f"def {head}:\n    return {result}"

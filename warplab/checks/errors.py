"""`CheckFailed`: what a learner reads when an answer is wrong."""

from typing import Any, Literal

import numpy as np

from warplab.simulator import errors as simulated

# Kinds of failure: all that a student is told about a hidden test, since its message would show the input.
Kind = Literal[
    "wrong result",
    "wrong type",
    "not finite",
    "not written",
    "input modified",
    "exception",
    "compile",
    "no function",
    "no kernel",
    "wrong language",
    "arguments",
    "outside",
    "misaligned",
    "uninitialized",
    "race",
    "barrier",
    "assertion",
    "endless",
    "unknown instruction",
    "stopped",
    "limit",
    "process",  # the notebook's process ended, or does not answer
]
_KINDS: tuple[tuple[type[simulated.SimulatorError], Kind], ...] = (
    (simulated.IllegalAddress, "outside"),
    (simulated.MisalignedAddress, "misaligned"),
    (simulated.UninitializedRead, "uninitialized"),
    (simulated.DataRace, "race"),
    (simulated.DivergentBarrier, "barrier"),
    (simulated.DivergentWarp, "barrier"),
    (simulated.AssertFailed, "assertion"),
    (simulated.InstructionLimit, "endless"),
    (simulated.UnsupportedInstruction, "unknown instruction"),
    (simulated.InvalidLaunch, "arguments"),
)


def kind_of(error: simulated.SimulatorError) -> Kind:
    """Return the kind of failure that the simulator reports."""
    return next((kind for cls, kind in _KINDS if isinstance(error, cls)), "stopped")


def line_of(error: simulated.SimulatorError) -> str:
    """Return the kernel's line that the simulator reports, such as "cell [5], line 3: c[i] = a[i];"; "" without one."""
    if not error.line:
        return ""
    return f"{error.file}, line {error.line}" + (f": {error.source.strip()}" if error.source else "")


class CheckFailed(AssertionError):
    """An answer that a check rejects; `str(error)` is the whole message.

    `problem`: what is wrong, one sentence. `expected`, `got`: both sides, where there are two.
    `where`: the input that showed it (size, grid, block, seed). `look_at`: where to look, never the answer.
    For hidden tests, whose inputs are secret: `kind`; `line` of the learner's kernel; `missed`, what is wrong with a
    counter that missed its limit, such as "too many barriers".
    """

    def __init__(
        self,
        problem: str,
        *,
        expected: str = "",
        got: str = "",
        where: str = "",
        look_at: str = "",
        kind: Kind = "wrong result",
        line: str = "",
        missed: str = "",
    ) -> None:
        self.problem, self.expected, self.got = problem, expected, got
        self.where, self.look_at = where, look_at
        self.kind, self.line, self.missed = kind, line, missed
        rows = (("expected", expected), ("got", got), ("input", where), ("look at", look_at))
        lines = [problem]
        for label, text in rows:
            if text:
                lines.append(f"  {label:<9} " + text.replace("\n", "\n" + " " * 12))
        super().__init__("\n".join(lines))

    def at(self, where: str) -> "CheckFailed":
        """Return the same failure, with more of the input that showed it."""
        return self.but(where=", ".join(filter(None, (self.where, where))))

    def but(self, **parts: Any) -> "CheckFailed":
        """Return the same failure with other `parts`, named as those of a new one."""
        names = ("problem", "expected", "got", "where", "look_at", "kind", "line", "missed")
        return CheckFailed(**{name: getattr(self, name) for name in names} | parts)

    def _render_traceback_(self) -> list[str]:
        # IPython calls this. The frames inside the check would hide the message from the learner.
        return [f"CheckFailed: {self}"]


def wrong_type(problem: str, **parts: Any) -> CheckFailed:
    """Return the failure of an answer of the wrong type, with `parts` as CheckFailed takes them."""
    return CheckFailed(problem, kind="wrong type", **parts)


def whole(value: Any) -> bool:
    """Return whether an answer is a whole number."""
    return type(value) is int or isinstance(value, np.integer)  # no bool, no class that may compare as it likes

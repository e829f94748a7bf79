"""`CheckFailed`: what a learner reads when an answer is wrong."""

from __future__ import annotations


class CheckFailed(AssertionError):
    """An answer that a check rejects; `str(error)` is the whole message.

    `problem`: what is wrong, one sentence. `expected`, `got`: both sides, where there are two.
    `where`: the input that showed it (size, grid, block, seed). `look_at`: where to look, never the answer.
    """

    def __init__(self, problem: str, *, expected: str = "", got: str = "", where: str = "", look_at: str = "") -> None:
        self.problem, self.expected, self.got = problem, expected, got
        self.where, self.look_at = where, look_at
        rows = (("expected", expected), ("got", got), ("input", where), ("look at", look_at))
        lines = [problem]
        for label, text in rows:
            if text:
                lines.append(f"  {label:<9} " + text.replace("\n", "\n" + " " * 12))
        super().__init__("\n".join(lines))

    def _render_traceback_(self) -> list[str]:
        # IPython calls this: the frames inside the check would hide the message from the learner.
        return [f"CheckFailed: {self}"]

"""One answer of a student's process, judged by one test, as the judge does it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from warpcourse.grading.judge import cells, stand_ins, verdicts

MEMORY = 4 << 30  # bytes: what a test may take


def judged(answer: dict[str, Any], test: str, seconds: float, names: Mapping[str, Any]) -> verdicts.Verdict:
    """Return the verdict of a test in which `x` is what `answer` describes. `seconds`: of processor time.

    Raises what would be the grader's own failure.
    """
    runner = cells.CellRunner(1000, MEMORY)
    runner.namespace.update(names)
    notebook = stand_ins.Notebook(lambda wishes: [answer] * len(wishes))
    cell = cells.TrustedCell("test", test)
    try:
        outcome = runner.run(cell, notebook.fetch(["x"]), 10 * seconds, seconds)
        verdict = verdicts.verdict(outcome, cell.source)
    finally:
        runner.close()
    json.dumps([verdict.message, verdict.detail, *verdict.traceback]).encode()
    if verdict.kind and verdict.kind not in verdicts.SENTENCES:
        raise ValueError(f"a verdict of an unknown kind, {verdict.kind!r}")
    return verdict

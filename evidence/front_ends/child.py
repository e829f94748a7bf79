"""One program of `run`, in this process: `python -m evidence.front_ends.child RESULT MODULE FUNCTION ARGUMENT ...`.

What the program raises decides its row: nothing, "ran"; a defect that the simulator reports, "found"; what it or the
front end does not have, "refused"; a test that tells so, "partly"; all else, "failed".
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import warnings
from pathlib import Path

import warplab
from warplab.compile.errors import CompileError
from warplab.simulator import InstructionLimit, SimulatorError, UnsupportedInstruction


def main(result: str, module: str, function: str, *arguments: str) -> None:
    """Run and write the row."""
    warnings.simplefilter("ignore")
    row = {"outcome": "ran"}
    with warplab.profile() as p:
        try:
            found = getattr(importlib.import_module(f"evidence.front_ends.{module}"), function)(*arguments)
            row |= found or {}
        except (UnsupportedInstruction, NotImplementedError, InstructionLimit, CompileError) as error:
            row = {"outcome": "refused", "note": short(error)}
        except SimulatorError as error:
            row = {"outcome": "found", "note": short(error)}
        except Exception as error:
            refused = type(error).__name__ == "CompilationError"  # of Triton
            row = {"outcome": "refused" if refused else "failed", "note": short(error)}
    row.setdefault("kernels", p.kernels[:12])
    row.setdefault("launches", len(p))
    Path(result).write_text(json.dumps(row))


def short(error: BaseException) -> str:
    """Return the class and the first words of an error."""
    return f"{type(error).__name__}: {words(str(error))}"


def words(text: str) -> str:
    """Return the first words of a text, without what depends on the machine."""
    return re.sub(r"0x[0-9a-f]{6,}|/[\w./-]+/", "…", " ".join(text.split()))[:200]


if __name__ == "__main__":
    main(*sys.argv[1:])

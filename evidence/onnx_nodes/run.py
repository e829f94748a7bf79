"""Import the onnx package's own node tests into lab 09's graph, run them in its engine, and write README.md.

    python -m evidence.onnx_nodes.run [OPERATOR ...]

A test that is refused as it is, is tried again with those inputs as constants that have not the first one's batch, and
with all but the first: ONNX's tests give weights as inputs. What is imported runs through the passes and the engine,
and is held to the outputs that ONNX expects, by ONNX's own tolerances. With operators named, prints what became of
their tests. The exit code is 1 where a result is wrong, or an error is no UnsupportedOperator.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import re
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.loader import load_model_tests

from kernels.fusion import plan
from kernels.fusion.exchange.onnx_import import IMPORTED, UnsupportedOperator, import_onnx
from kernels.fusion.graph import Graph, interpret
from kernels.fusion.passes.optimise import fuse
from warplab.text.tables import markdown

PAGE = Path(__file__).parent / "README.md"
AS_IS, CONSTANTS, REFUSED, WRONG = "as it is", "with constants", "refused", "wrong"
LEAST = 1e-6  # of the largest result, beside ONNX's relative tolerance: sums in float32
_HEAD = """# ONNX's node tests through lab 09's engine

<!-- Written by `python -m evidence.onnx_nodes.run`; do not edit. -->

onnx {version} has {tests:,} tests of single operators ("node tests"). **{passed} pass**: {as_is} as they are, and
{constants} with those inputs as constants that have not the first one's batch, or all but the first, since the tests
give weights as inputs, and the importer wants them known. {wrong} give a wrong result. The other {refused:,} are
refused by an `UnsupportedOperator` that names the operator, and the setting, and says what would do. What passes is
imported, goes through the passes of lab 09 and through its engine in the simulator, and is held to the expected outputs
by ONNX's own relative tolerance, {rtol:g}.

An operator that ONNX defines as a function of others counts as passed where these are: {functions} such operators are
not in the importer's table. Below are operators with a test that passes, then the others by name.
"""


@dataclass(frozen=True)
class Outcome:
    """What became of a test of `operator`. `why`: the error's message."""

    test: str
    operator: str
    kind: str
    why: str = ""


def outcomes(operators: Sequence[str] = ()) -> list[Outcome]:
    """Run the tests of these operators, or of all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    of_test = {test.name: test.model.graph.node[0].op_type for test in tests}
    found = []
    for test in tests:
        operator = of_test.get(re.sub(r"_expanded(_ver\d+)?$", "", test.name), of_test[test.name])
        if not operators or operator in operators:
            found.append(_outcome(test, operator))
    return found


def _outcome(test: Any, operator: str) -> Outcome:
    (given, outputs), why = test.data_sets[0], ""
    for computed in _choices(given):
        inputs = [given[i] for i in computed]
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                graph = import_onnx(with_constants(test.model, given, computed))
                differences = _differences(graph, inputs, outputs, test.rtol)
        except UnsupportedOperator as error:
            why = str(error)
            continue
        except Exception:
            return Outcome(test.name, operator, WRONG, traceback.format_exc(limit=-3))
        kind = AS_IS if len(computed) == len(given) else CONSTANTS
        return Outcome(test.name, operator, WRONG if differences else kind, differences)
    return Outcome(test.name, operator, REFUSED, why)


def _choices(given: Sequence[Any]) -> list[Sequence[int]]:
    """Return which inputs are computed: all; those that have the first one's batch; the first."""
    everything = list(range(len(given)))
    if not all(isinstance(one, np.ndarray | np.generic) for one in given) or not given or not np.ndim(given[0]):
        return [everything]
    batch = [i for i in everything if np.ndim(given[i]) > 1 and len(given[i]) == len(given[0])]
    floats = [i for i in batch if given[i].dtype == np.float32]
    return list(dict.fromkeys(map(tuple, (everything, floats if 0 in floats else everything, [0]))))


def with_constants(model: onnx.ModelProto, given: Sequence[Any], computed: Sequence[int]) -> onnx.ModelProto:
    """Return the model with its inputs as constants of these values, but for those that are computed."""
    made = copy.deepcopy(model)
    for i, one in enumerate(model.graph.input):
        if i not in computed:
            made.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(given[i]), one.name))
    del made.graph.input[:]
    made.graph.input.extend(model.graph.input[i] for i in computed)
    if len(computed) < len(given):
        made.ir_version = max(made.ir_version, 4)  # in which constants need not be inputs
    return made


def _differences(graph: Graph, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], rtol: float) -> str:
    """Return where the graph, by the interpreter, or its optimised form, by the engine, gives something else."""
    run = plan.Engine(plan.build(fuse(graph), len(inputs[0]))).run(*inputs)
    results = {"interpreter": interpret.run(graph, *inputs)}
    results["engine"] = run if isinstance(run, dict) else {graph.outputs[0]: run}
    for way, found in results.items():
        for name, expected in zip(graph.outputs, outputs, strict=True):
            size = np.abs(expected[np.isfinite(expected)]).max(initial=0)
            close = np.allclose(found[name], expected, rtol=rtol, atol=LEAST * size, equal_nan=True)
            if found[name].shape != expected.shape or not close:
                return f"{way}: {name} is {found[name].shape} {found[name].ravel()[:4]}, not {expected.ravel()[:4]}"
    return ""


def page(found: Sequence[Outcome], rtol: float = 1e-3) -> str:
    """Return the page of these outcomes, Markdown."""
    kinds, names = Counter(one.kind for one in found), sorted({one.operator for one in found})
    of_name = {name: [one for one in found if one.operator == name] for name in names}
    rows, others = [], []
    for name, tests in of_name.items():
        counts = Counter(one.kind for one in tests)
        passed = counts[AS_IS] + counts[CONSTANTS]
        if passed:
            reasons = Counter(_reason(one) for one in tests if one.kind == REFUSED)
            most = reasons.most_common(1)[0][0] if reasons else ""
            rows.append([f"`{name}`", str(len(tests)), str(counts[AS_IS]), str(counts[CONSTANTS]), most])
        else:
            others.append(f"{name} {len(tests)}")
    numbers = {
        "version": onnx.__version__,
        "tests": len(found),
        "passed": kinds[AS_IS] + kinds[CONSTANTS],
        "as_is": kinds[AS_IS],
        "constants": kinds[CONSTANTS],
        "wrong": f"{kinds[WRONG]}" if kinds[WRONG] else "None",
        "refused": kinds[REFUSED],
        "rtol": rtol,
        "functions": sum(row[0].strip("`") not in IMPORTED for row in rows),
    }
    headings = ["operator", "tests", "pass", "pass with constants", "most of the others: why they are refused"]
    table, rest = markdown(headings, rows), ", ".join(others)
    return f"{_HEAD.format(**numbers)}\n{table}\n\nNo test passes, of so many, of: {rest}.\n"


def _reason(one: Outcome) -> str:
    """Return the reason of a refusal, without the names and numbers of its node."""
    if found := re.search(r"is a (\w+), which cannot be imported", one.why):
        return "is not imported" if found[1] == one.operator else f"is made of {found[1]}, which is not imported"
    if found := re.match(r"(input|output) '[^']*' (?:is )?(\w+)", one.why):
        return "an output is a constant" if found[1] == "output" else f"its input is {_of_type(one.why)}"
    why = one.why.partition("cannot be imported: ")[2]
    return re.sub(r"'[^']*'", "an input", why).partition(";")[0].replace("|", "\\|")[:100]


def _of_type(why: str) -> str:
    kind = re.search(r"is (\w+) (of|without)", why)
    return "FLOAT of other axes" if kind is None or kind[1] == "FLOAT" else f"{kind[1]}"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*", metavar="OPERATOR")
    wanted = parser.parse_args().operators
    found = outcomes(wanted)
    for one in found:
        if wanted or one.kind == WRONG:
            print(f"{one.test}: {one.kind} {one.why}")
    print(", ".join(f"{count} {kind}" for kind, count in Counter(one.kind for one in found).items()))
    if not wanted:
        PAGE.write_text(page(found), encoding="utf-8")
    sys.exit(any(one.kind == WRONG for one in found))


if __name__ == "__main__":
    main()

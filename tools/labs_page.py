"""Writes docs/labs.md: what a lab's kernels reach, its counters against Nsight Compute's, pictures, verdict, exercise.

    python tools/labs_page.py            write the page; times on a CPU are as last measured
    python tools/labs_page.py --measure  first time lessons and exercises in the simulator (some minutes)

All of it is taken from what is there: recordings, docs/counters.md, outputs of the lessons, tests/mutants. What is not
there yet, such as measurements of a lab that nobody has run on a GPU, the page says. Pictures go to docs/labs/.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import nbformat
from nbformat.notebooknode import NotebookNode

from kernels.matmul import benchmark as matmul
from kernels.memory_access import benchmark as memory_access
from kernels.tensor_core import benchmark as tensor_core
from kernels.vector_multiply import benchmark as vector_multiply
from kernels.warp_divergence import benchmark as warp_divergence
from tests.support.exercise_harness import answers_and_tests, cells_by_id, mutants, source_notebook
from tools.labs_tried import TRIED
from warplab.bench.recordings import MissingRecording, Recordings
from warplab.bench.timing import host
from warplab.paths import COURSE

PAGE = COURSE / "docs" / "labs.md"
PICTURES = COURSE / "docs" / "labs"
TIMES = COURSE / "docs" / "labs_times.json"

HEAD = """# The labs: what was measured, counted and tried

<!-- Written by tools/labs_page.py; do not edit. -->

Tables of kernels are from one run of `make record` on the GPU that is named with them; `make bench` prints the same
for yours. Ratios are to a copy, to libraries and to peaks timed in the same run, alternating; each output was checked.
Counters are from `make compare-ncu`. Pictures are some of those in the lessons, as last run."""

NOT_MEASURED = (
    "The ladder was not measured yet: nobody has recorded these kernels on a GPU. No time, and no ratio to the library "
    "or to a measured peak, is claimed; `make record` measures them."
)
NOT_COUNTED = "Not compared yet: these launches have not run under `ncu`. `make compare-ncu` compares them."
NOT_TIMED = "Not timed yet."


class Lab(NamedTuple):
    """`topic`: of its kernels and recordings. `tables`: their tables of kernels as text, from recorded values.

    `pictures`: what to show of the lesson: ids of its cells, each with what is to be seen, for those who cannot see it.
    """

    topic: str
    tables: Callable[[dict[str, Any]], str]
    pictures: dict[str, str]


LABS = {
    "01_vector_multiply": Lab(
        "vector_multiply",
        lambda values: vector_multiply.text(values["kernel_table"]),
        {
            "multiply-41": "The elements that each thread of two blocks takes in a loop with the stride of the grid",
            "multiply-83": "Bandwidth of each kernel, beside a copy and cupy.multiply",
        },
    ),
    "02_memory_access": Lab(
        "memory_access",
        memory_access.text,
        {
            "memory-40": "Banks that the lanes of a warp store to and load from in a tile: 1 wavefront, and 32",
            "memory-52": "Bandwidth of each transpose, beside a copy",
        },
    ),
    "03_warp_divergence": Lab(
        "warp_divergence",
        warp_divergence.text,
        {
            "divergence-ordered-drawn": "Which lanes of a warp run in each step, and which wait for others",
            "divergence-histogram": "Bandwidth of each histogram of skewed data, beside CUB and CuPy",
        },
    ),
    "04_matrix_multiply": Lab(
        "matmul",
        matmul.text,
        {
            "matmul-warp-drawn": "The tiles of A, B and C that a block, its first warp and its first thread work on",
            "matmul-ladder": "TFLOP/s of each step, beside cuBLAS and the measured peak of multiply-adds",
            "matmul-roofline": "Each step as a point under the measured roofline",
        },
    ),
    "05_tensor_cores": Lab(
        "tensor_core",
        tensor_core.text,
        {
            "tensor-fragments-drawn": "Which lane holds which element of A, B and D of mma.m16n8k16",
            "tensor-error-positive": "The error of sums in FP16 and FP32 against their length",
            "tensor-ladder-measured": "TFLOP/s of each step, beside cuBLAS, cuBLASLt and the measured peaks",
        },
    ),
}


def page() -> str:
    """The whole page, Markdown."""
    parts = [HEAD]
    for name, lab in LABS.items():
        parts += section(name, lab)
    return "\n\n".join(parts) + "\n"


def section(name: str, lab: Lab) -> Iterator[str]:
    """A lab's part of the page, in paragraphs."""
    lesson = _lesson(name)
    yield f"## {lesson.cells[0].source.splitlines()[0].removeprefix('# ')}"
    yield "### Kernels"
    try:
        recorded = Recordings(lab.topic).load()
    except MissingRecording:
        yield NOT_MEASURED
    else:
        yield f"{recorded['device']}, {recorded['date']}."
        yield f"```text\n{lab.tables(recorded['values'])}\n```"
        profile = COURSE / "kernels" / lab.topic / "profile.json"
        if profile.exists():
            yield from _profile(json.loads(profile.read_text(encoding="utf-8")))
    yield f"### Counters\n\n{_counters(name)}"
    yield "### Pictures"
    for cell in _pictures(name):
        yield f"![{lab.pictures[cell]}](labs/{cell}.png)"
    yield f"### Verdict\n\nWhat [the lesson](../notebooks/{name}.ipynb) prints, of what was recorded:"
    yield f"```text\n{_verdict(lesson)}\n```"
    yield f"### Exercise\n\nWrong answers that it must reject, each for its reason: `tests/mutants/{name}/`."
    yield _table(["problem", "points", "wrong answers", ""], _problems(name))
    yield f"### Time without a GPU\n\n{_times(name)}"
    if name in TRIED:
        yield "### Tried as a newcomer"
        yield _table(["what did not work", "what was changed"], TRIED[name])


def _profile(recorded: dict[str, Any]) -> Iterator[str]:
    """What Nsight Compute says of the kernels at work, from a topic's profile.json."""
    yield f"Under Nsight Compute ({recorded['device']}, {recorded['date']}; {recorded['launches']}):"
    metrics = recorded["metrics"]
    yield _table(
        ["kernel", *metrics], [[row["name"], *(f"{row[key]:.3g}" for key in metrics)] for row in recorded["rows"]]
    )
    names = "; ".join(f"{key}: `{name}`" for key, name in metrics.items())
    yield f"`{recorded['command']}`. {names}."


def _table(heads: list[str], rows: Any) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


def _lesson(name: str) -> NotebookNode:
    return nbformat.read(COURSE / "notebooks" / f"{name}.ipynb", as_version=4)


def _verdict(lesson: NotebookNode) -> str:
    """What the cells under the heading "Verdict" print, without what was measured at the last run: lines that say so,
    and those below them, up to what was recorded, the next claim or the end of the cell."""
    first = next(k for k, cell in enumerate(lesson.cells) if cell.source.startswith("## Verdict"))
    outputs = [output for cell in lesson.cells[first:] for output in cell.get("outputs", [])]
    kept = []
    for output in outputs:
        live = False
        for line in output.text.splitlines() if output.output_type == "stream" else ():
            live = "measured on" in line or (live and not re.match(r"Claim|.*recorded on", line))
            kept += [line] if line and not live else []
    return "\n".join(kept)


def _pictures(name: str) -> dict[str, bytes]:
    """PNG files by cell, of the lab's `pictures`; without those cells that have none yet, such as charts of times."""
    cells = {cell.id: cell for cell in _lesson(name).cells}
    found = {}
    for number in LABS[name].pictures:
        for output in cells[number].outputs:
            if "image/png" in output.get("data", {}):
                found[number] = base64.b64decode(output.data["image/png"])
    return found


def pictures() -> dict[str, bytes]:
    """What docs/labs/ holds: PNG files by name."""
    return {f"{cell}.png": data for name in LABS for cell, data in _pictures(name).items()}


def _counters(name: str) -> str:
    """How many counters of the lab's launches are equal, from its table in docs/counters.md."""
    text = (COURSE / "docs" / "counters.md").read_text()
    title = re.search(rf"^## (.+ \(lab {name[:2]}\))$", text, flags=re.MULTILINE)
    if not title:
        return NOT_COUNTED
    title = title[1]
    section = text.split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][2:]
    counters = [cell for row in rows for cell in row[3:-1] if cell != "–"]
    apart = max(abs(float(ours) - float(theirs)) for theirs, ours, _ in (_efficiencies(row[-1]) for row in rows))
    anchor = re.sub(r"[^\w -]", "", title).lower().replace(" ", "-")
    differ = sum("**" in cell for cell in counters)
    return (
        f"{len(rows)} launches under `ncu` and in the simulator: of {len(counters):,} counters {differ} differ; warp "
        f"efficiencies by at most {apart:.1f} points. [Which, and why](counters.md#{anchor})."
    )


def _efficiencies(cell: str) -> list[str]:
    return cell.replace("*", "").split(" / ")


def _problems(name: str) -> Iterator[list[str]]:
    notebook = source_notebook(name)
    cells, wrong = cells_by_id(notebook), mutants(name)
    titles = {
        cell.metadata.nbgrader.grade_id: heading
        for cell, heading in _with_headings(notebook)
        if "nbgrader" in cell.metadata
    }
    for problem, tests in answers_and_tests(notebook).items():
        own = [mutant.path.stem.split("_", 1)[1].replace("_", " ") for mutant in wrong if mutant.problem == problem]
        points = " + ".join(f"{cells[test].metadata.nbgrader.points:g}" for test in tests)
        yield [titles[problem], points, str(len(own)), ", ".join(own)]


def _with_headings(notebook: NotebookNode) -> Iterator[tuple[NotebookNode, str]]:
    """Each cell with the heading that it stands under."""
    heading = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            heading = cell.source.splitlines()[0].removeprefix("## ")
        yield cell, heading


def _times(name: str) -> str:
    measured = json.loads(TIMES.read_text())
    if name not in measured["seconds"]:
        return NOT_TIMED
    lesson, exercise = (measured["seconds"][name][what] for what in ("lesson", "exercise"))
    return (
        f"The lesson runs in {lesson['wall']:.0f} s from its first cell to its last ({lesson['processor']:.0f} s of "
        f"processor time), the check of the solved exercise takes {exercise['wall']:.0f} s "
        f"({exercise['processor']:.0f} s); {measured['device']}, {measured['date']}."
    )


def measure() -> None:
    """Times every lesson, tasks unsolved, and the check of every solution, each in processes of its own."""
    environment = os.environ | {"WARPLAB_BACKEND": "simulator"}
    commands = {
        "lesson": lambda name: ["tools/execute_notebooks.py", "--check", f"notebooks/{name}.ipynb"],
        "exercise": lambda name: ["-m", "warplab", "check", f"solutions/{name}"],
    }
    seconds: dict[str, dict[str, dict[str, float]]] = {name: {} for name in LABS}
    for name in LABS:
        for what, command in commands.items():
            wall, processor = time.perf_counter(), _processor_seconds()
            subprocess.run([sys.executable, *command(name)], cwd=COURSE, env=environment, check=True)
            seconds[name][what] = {
                "wall": round(time.perf_counter() - wall, 1),
                "processor": round(_processor_seconds() - processor, 1),
            }
    about = host()
    found = {
        "device": f"{about['cpu']}, {about['cores']} cores",
        "date": datetime.now(UTC).date().isoformat(),
        "seconds": seconds,
    }
    TIMES.write_text(json.dumps(found, indent=1) + "\n")


def _processor_seconds() -> float:
    """That ended processes of this one have taken; other work on the machine does not add to it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", action="store_true", help="time lessons and exercises first")
    if parser.parse_args().measure:
        measure()
    PAGE.write_text(page(), encoding="utf-8")
    PICTURES.mkdir(exist_ok=True)
    for stale in {path.name for path in PICTURES.iterdir()} - set(pictures()):
        (PICTURES / stale).unlink()
    for file, data in pictures().items():
        (PICTURES / file).write_bytes(data)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Writes what the labs' records, recordings, lessons and exercises say: README's table, docs/labs.md, a page per lab.

    python -m tools.labs_page                 write the pages; times on a CPU are as last measured
    python -m tools.labs_page --measure LAB   first time that lab's lesson and exercise in the simulator
    python -m tools.labs_page --count LAB     first count in the simulator what that lab's lesson reveals

The page of a lab is README.md in its package, beside its pictures. What is not there yet, such as measurements of a lab
that nobody has run on a GPU, the page says.
"""

import argparse
import base64
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode

from tests.support.exercise_answers import FOLDER, answers_and_tests, cells_by_id, source_notebook, wrong_answers
from warpcourse.bench.lab import Lab, find, labs
from warpcourse.bench.recordings import Measurement
from warpcourse.bench.timing import host
from warpcourse.paths import COURSE
from warplab.text.tables import markdown

INDEX = COURSE / "docs" / "labs.md"
README = COURSE / "README.md"
LIBRARIES = ("nvidia-cublas", "nvidia-cudnn-cu13", "nvidia-cuda-nvrtc")
COUNTED = "counted.md"
PLANNED = COURSE / "kernels" / "planned_labs.json"
BEGIN, END = "<!-- Labs, written by tools/labs_page.py -->", "<!-- End of the labs -->"

HEAD = """# The labs: what was measured and counted

<!-- Written by tools/labs_page.py; do not edit. -->

A lab's page has its tables of kernels, its counters beside Nsight Compute's, some of its pictures, and the verdict.
Tables are from `make record` on the GPU that is named with them; `make bench` prints the same for yours. Ratios are to
a copy, to libraries and to peaks timed in the same run, alternating; each output was checked. The libraries' versions
stand with what was measured since 2026-11-25; nobody recorded them before. They are what that machine had, which is
not all that the requirements pin: cuDNN there is 9.19, and pinned at 9.28. Counters are from `make compare-ncu`; how
they are counted: [simulator.md](simulator.md). Pictures are some of those in the lessons, as last run."""
LAB_HEAD = "<!-- Written by tools/labs_page.py; do not edit. How to read this page: {index} -->"
NOT_MEASURED = (
    "Not measured yet: nobody has recorded these kernels on a GPU. No time, and no ratio to a library or to a measured "
    "peak, is claimed; `make record` measures them."
)
NOT_COUNTED = "Not compared yet: these launches have not run under `ncu`. `make compare-ncu` compares them."
NOT_TIMED = "Not timed yet."


def pages() -> dict[Path, str]:
    """Return all pages by path: README.md with its table, docs/labs.md, the page of each lab with something to show."""
    found = {lab.folder / "README.md": page(lab) for lab in labs() if has_page(lab)}
    return {README: readme(README.read_text(encoding="utf-8")), INDEX: index(), **found}


def readme(text: str) -> str:
    """Return README with its table of labs anew. ValueError when the marks around it are gone."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"README.md has no {BEGIN!r} followed by {END!r}; put both around the table of labs")
    return f"{before}{BEGIN}\n\n{readme_table()}\n\n{END}{after}"


def readme_table() -> str:
    """Return the labs that are there, and the planned ones whose number no lab has yet."""
    rows = {}
    for lab in labs():
        status = lab.status if lab.simulator else f"{lab.status}; {lab.runs_on}"
        text = "measured" if lab.recordings.path.exists() else "page"
        more = f"; [{text}]({_link(README, lab.folder / 'README.md')})" if has_page(lab) else ""
        link = _links(README, lab, lab.title) or f"[{lab.title}]({_link(README, lab.folder)})"
        rows[lab.number] = (f"{lab.number:02}", link, lab.claim, status + more)
    for row in json.loads(PLANNED.read_text(encoding="utf-8")):
        rows.setdefault(row["number"], (f"{row['number']:02}", row["title"], row["claim"], "planned"))
    return markdown(("", "Lab", "The claim on trial", ""), (row for _, row in sorted(rows.items())))


def index() -> str:
    """Return docs/labs.md."""
    rows = []
    for lab in (lab for lab in labs() if has_page(lab)):
        origins = sorted({m.origin for m in lab.recordings.load().values()}) if lab.recordings.path.exists() else []
        wrong = str(sum(len(wrong_answers(one.slug)) for one in lab.exercises) or "")
        link = f"[{lab.number:02} {lab.title}]({_link(INDEX, lab.folder / 'README.md')})"
        rows.append((link, lab.runs_on, "; ".join(origins), wrong))
    headers = ("lab", "runs on", "measured on", "wrong answers that its exercise must reject")
    return f"{HEAD}\n\n{markdown(headers, rows)}\n"


def has_page(lab: Lab) -> bool:
    """Return whether there is anything to show beside the lesson."""
    return bool(lab.benchmark or lab.launches or lab.shown or lab.exercises)


def page(lab: Lab) -> str:
    """Return a lab's page, Markdown."""
    return "\n\n".join(_parts(lab)) + "\n"


def _parts(lab: Lab) -> Iterator[str]:
    """Return the page's paragraphs."""
    here = lab.folder / "README.md"
    yield f"# {lab.number:02} {lab.title}"
    yield LAB_HEAD.format(index=_link(here, INDEX))
    lesson = f" {_links(here, lab, 'The lesson')}." if lab.code_cells else ""
    yield f"Runs on: {lab.runs_on}.{lesson}"
    if lab.benchmark:
        yield "## Kernels"
        yield from _kernels(lab)
    if lab.launches:
        yield f"## Counters\n\n{_counters(lab)}"
    if (counted := lab.folder / COUNTED).exists():
        yield f"What the lesson counts in the simulator:\n\n{counted.read_text(encoding='utf-8').rstrip()}"
    if found := pictures(lab):
        yield "## Pictures"
        yield from (f"![{lab.shown[Path(file).stem]}](pictures/{file})" for file in found)
    if verdict := "\n".join(filter(None, map(_verdict, _lessons(lab)))):
        yield "## Verdict\n\nWhat the lesson prints, of what was recorded:"
        yield f"```text\n{verdict}\n```"
    if lab.exercises:
        tables = ", ".join(
            f"[tables{f' of {one.slug}' * (len(lab.exercises) > 1)}]({_link(here, one.tests / FOLDER)}/)"
            for one in lab.exercises
        )
        yield f"## Exercise\n\nWrong answers that it must reject, each for its reason, are in {tables}."
        problems = (row for one in lab.exercises for row in _problems(one))
        yield markdown(["problem", "points", "wrong answers"], problems)
    if lab.code_cells and not lab.needs_gpu:
        yield f"## Time without a GPU\n\n{_times(lab)}"


def _kernels(lab: Lab) -> Iterator[str]:
    if not lab.recordings.path.exists():
        yield NOT_MEASURED
        return
    assert lab.benchmark  # the caller has looked
    benchmark = lab.module(lab.benchmark).BENCHMARK
    measured = {key: m for key, m in lab.recordings.load().items() if key in benchmark.tables}
    for origin in dict.fromkeys(map(_origin, measured.values())):
        own = {key: m for key, m in measured.items() if _origin(m) == origin}
        values, machines = ({key: getattr(m, name) for key, m in own.items()} for name in ("value", "machine"))
        yield f"{origin}."
        yield f"```text\n{benchmark.text(values, machines)}\n```"
    if benchmark.not_recorded:
        yield f"Not measured on a GPU yet: {', '.join(sorted(benchmark.not_recorded))}. `make record` measures it."
    profile = lab.folder / "profile.json"
    if profile.exists():
        yield from _profile(json.loads(profile.read_text(encoding="utf-8")))


def _origin(measured: Measurement) -> str:
    """Return GPU, date and version of CUDA, and those of driver and NVIDIA's libraries where they were recorded."""
    machine = measured.machine
    versions = {"CUDA": machine.get("cuda_driver"), "driver": machine.get("driver")}
    versions |= {name[7:]: machine.get("packages", {}).get(name) for name in LIBRARIES}
    return ", ".join([measured.origin, *(f"{name} {version}" for name, version in versions.items() if version)])


def _profile(recorded: Mapping[str, Any]) -> Iterator[str]:
    """Return what Nsight Compute says of the kernels at work, from a lab's profile.json."""
    yield f"Under Nsight Compute ({recorded['device']}, {recorded['date']}; {recorded['launches']}):"
    metrics = recorded["metrics"]
    yield markdown(
        ["kernel", *metrics], [[row["name"], *(f"{row[key]:.3g}" for key in metrics)] for row in recorded["rows"]]
    )
    names = "; ".join(f"{key}: `{name}`" for key, name in metrics.items())
    yield f"`{recorded['command']}`. {names}."


def _counters(lab: Lab) -> str:
    """Say how many counters of the lab's launches are equal, as the page of its counters says."""
    path = lab.folder / "counters.md"
    if not path.exists():
        return NOT_COUNTED
    summary = next(line for line in path.read_text(encoding="utf-8").splitlines() if re.match(r"\d+ launches", line))
    return f"{summary} [Which, and why](counters.md)."


def _link(page: Path, target: Path) -> str:
    return Path(os.path.relpath(target, page.parent)).as_posix()


def _links(page: Path, lab: Lab, first: str) -> str:
    names = (first, "second notebook", "third")
    return ", ".join(f"[{name}]({_link(page, one.notebook)})" for name, one in zip(names, lab.lessons, strict=False))


def _lessons(lab: Lab) -> list[NotebookNode]:
    """Return the lab's notebooks."""
    return [nbformat.read(lesson.notebook, as_version=4) for lesson in lab.lessons]


def _verdict(lesson: NotebookNode) -> str:
    """Return what the cells under the heading "Verdict" print, without what was measured at the last run: lines that
    say so, and those below them, up to what was recorded, the next claim or the end of the cell. "" without such a
    heading. Sections behind the verdict do not belong to it.
    """
    headings = [
        k for k, cell in enumerate(lesson.cells) if cell.cell_type == "markdown" and re.match(r"##? ", cell.source)
    ]
    first = next((k for k in headings if lesson.cells[k].source.startswith("## Verdict")), len(lesson.cells))
    end = next((k for k in headings if k > first), len(lesson.cells))
    outputs = [output for cell in lesson.cells[first:end] for output in cell.get("outputs", [])]
    kept = []
    for output in outputs:
        live = False
        for line in output.text.splitlines() if output.output_type == "stream" else ():
            live = "measured on" in line or (live and not re.match(r"Claim|.*recorded on", line))
            kept += [line] if line and not live else []
    return "\n".join(kept)


def pictures(lab: Lab) -> dict[str, bytes]:
    """Return PNG files by name: those that the lab shows, but what its lesson lacks yet, such as charts of times."""
    cells = {cell.id: cell for lesson in _lessons(lab) for cell in lesson.cells}
    if unknown := set(lab.shown) - set(cells):
        raise ValueError(f"{lab.notebook.name} has no cell {', '.join(sorted(unknown))}; correct `shown` in lab.py")
    return {
        f"{cell}.png": base64.b64decode(output.data["image/png"])
        for cell in lab.shown
        for output in cells[cell].outputs
        if "image/png" in output.get("data", {})
    }


def _problems(lab: Lab) -> Iterator[list[str]]:
    notebook = source_notebook(lab.slug)
    cells, wrong = cells_by_id(notebook), Counter(answer.problem for answer in wrong_answers(lab.slug))
    titles = {
        cell.metadata.nbgrader.grade_id: heading
        for cell, heading in _with_headings(notebook)
        if "nbgrader" in cell.metadata
    }
    for problem, tests in answers_and_tests(notebook).items():
        points = " + ".join(f"{cells[test].metadata.nbgrader.points:g}" for test in tests)
        yield [titles[problem], points, str(wrong[problem])]


def _with_headings(notebook: NotebookNode) -> Iterator[tuple[NotebookNode, str]]:
    """Yield each cell with the heading that it stands under."""
    heading = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            heading = cell.source.splitlines()[0].removeprefix("## ")
        yield cell, heading


def _times(lab: Lab) -> str:
    path = lab.folder / "times.json"
    if not path.exists():
        return NOT_TIMED
    measured = json.loads(path.read_text())
    said = {
        "lesson": "The lesson runs in {wall:.0f} s from first to last cell ({processor:.0f} s of processor time)",
        "exercise": "the check of the solved exercise takes {wall:.0f} s ({processor:.0f} s)",
    }
    parts = [text.format(**measured[what]) for what, text in said.items() if what in measured]
    load = f" at a load of {measured['load']:g}" if measured.get("load", 0) > 1 else ""
    return f"{', '.join(parts)}; {measured['device']}{load}, {measured['date']}."


def measure(lab: Lab) -> None:
    """Time a lesson, its tasks unsolved, and the check of its solution, each in processes of its own."""
    environment = os.environ | {"WARPLAB_BACKEND": "simulator"}
    commands = {"lesson": [["-m", "tools.execute_notebooks", "--check", lab.slug]]}
    if lab.exercises:
        commands["exercise"] = [["-m", "warplab", "check", str(one.solution)] for one in lab.exercises]
    about = host()
    found: dict[str, Any] = {
        "device": f"{about['cpu']}, {about['cores']} cores",
        "date": datetime.now(UTC).date().isoformat(),
        "load": round(os.getloadavg()[0], 1),  # of other work, which makes what takes one second take longer
    }
    for what, several in commands.items():
        wall, processor = time.perf_counter(), _processor_seconds()
        for command in several:
            subprocess.run([sys.executable, *command], cwd=COURSE, env=environment, check=True)
        found[what] = {
            "wall": round(time.perf_counter() - wall, 1),
            "processor": round(_processor_seconds() - processor, 1),
        }
    (lab.folder / "times.json").write_text(json.dumps(found, indent=1) + "\n")


def counts(lab: Lab) -> str:
    """Return the table of what a lab's lesson counts; ValueError for a lab whose record names no module for that."""
    if not lab.counted:
        raise ValueError(f"lab.py of lab {lab.number:02} has no `counted`")
    return markdown(*lab.module(lab.counted).table()) + "\n"


def _processor_seconds() -> float:
    """Return the processor time of this process's ended children; other work on the machine does not add to it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write() -> None:
    """Write all pages and pictures."""
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    for lab in labs():
        folder, found = lab.folder / "pictures", pictures(lab)
        for stale in [path for path in folder.glob("*.png") if path.name not in found]:
            stale.unlink()
        for file, data in found.items():
            folder.mkdir(exist_ok=True)
            (folder / file).write_bytes(data)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.labs_page", description=__doc__.splitlines()[0])
    parser.add_argument("--measure", nargs="+", metavar="LAB", help="time lesson and exercise of these labs first")
    parser.add_argument("--count", nargs="+", metavar="LAB", help="count what these labs' lessons reveal first")
    arguments = parser.parse_args()
    for name in arguments.measure or ():
        measure(find(name))
    for lab in map(find, arguments.count or ()):
        (lab.folder / COUNTED).write_text(counts(lab), encoding="utf-8")
    write()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

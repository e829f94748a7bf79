"""Execute lessons from a clean kernel, top to bottom, and write their outputs in place.

    python -m tools.execute_notebooks                      the lesson of every lab that runs on this machine
    python -m tools.execute_notebooks 04 matmul x.ipynb    those of these labs, and notebooks by their path
    python -m tools.execute_notebooks --check              run, write nothing

A notebook is written only if no cell raised an error or wrote to stderr. Paths of this machine are cut from the text
of outputs; execution timestamps are not kept. The device goes into the notebook's metadata under "warplab".

Cells with the tag `reveal` answer a prediction: they are executed, and saved without outputs, so that a learner who
opens the lesson sees no answer. The line that names the backend is not saved, as it is this machine's and not the
reader's; of a widget, what readers without a running kernel can see is kept.
Ends with 1 if a notebook failed.
"""

import argparse
import base64
import datetime
import io
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat.notebooknode import NotebookNode
from PIL import Image

from warpcourse.bench import timing
from warpcourse.bench.lab import Lab, find, labs
from warpcourse.paths import COURSE
from warplab.hardware import backend

NOTEBOOKS = COURSE / "notebooks"
TIMEOUT = 300  # seconds per cell
COLOURS = 64  # of a picture's palette: a third of the bytes, and no difference to be seen in a diagram
ABSOLUTE_PATH = re.compile(r"(?<![\w./:-])/(?:home|root|tmp|usr|opt|var|mnt|srv|work|workspace|data|Users)/[\w./-]+")
REVEAL = "reveal"  # the tag of cells that answer a prediction
BANNER = re.compile(r"^Warp Lab runs kernels on .*\n?", re.MULTILINE)  # warplab.hardware.backend.announce
WIDGET = "application/vnd.jupyter.widget-view+json"
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class Failed(Exception):
    """A notebook that cannot be kept; the message names the cell and says why."""


def execute(notebook: NotebookNode, timeout: int = TIMEOUT) -> NotebookNode:
    """Run all cells in a fresh Python process with notebooks/ as its folder; outputs go into `notebook`.

    Raises `Failed` at the first error, and after the run for output on stderr and for absolute paths.
    """
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,  # one output for what was printed, in however many pieces it came
        extra_arguments=["--log-level=ERROR"],  # no warning about sockets on this machine
        resources={"metadata": {"path": str(NOTEBOOKS)}},
    )
    search_path = os.pathsep.join(filter(None, [str(COURSE), os.environ.get("PYTHONPATH")]))
    # A backend chosen outside would keep pictures out of the notebook.
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    # Nor may the predictions of whoever executes a lesson appear in it.
    with tempfile.TemporaryDirectory() as nobody:
        try:
            client.execute(env={**environment, "PYTHONPATH": search_path, "WARPLAB_MINE": nobody})
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            raise Failed(ESCAPES.sub("", str(error))) from None
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    for cell in code_cells(notebook):
        for output in cell.outputs:
            _clean(output)
            _inspect(cell, output)
            _shrink(output)
    return notebook


def conceal(notebook: NotebookNode) -> NotebookNode:
    """Take out of `notebook`'s outputs what its reader must not or cannot see: see this module's docstring."""
    for cell in code_cells(notebook):
        if REVEAL in cell.metadata.get("tags", []):
            cell.outputs = []
        cell.outputs = [output for output in cell.outputs if _for_readers(output)]
    return notebook


def _for_readers(output: NotebookNode) -> bool:
    """Take out the banner and the view of a widget; return whether anything is left of an output for a reader."""
    if output.output_type == "stream" and output.name == "stdout":
        output.text = BANNER.sub("", output.text)
        return bool(output.text)
    if output.get("data") == {"text/plain": ""}:  # where a wait was told
        return False
    if WIDGET in output.get("data", {}):
        del output.data[WIDGET]
        return set(output.data) != {"text/plain"}
    return True


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Return the code cells, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(output: NotebookNode) -> dict[str, str]:
    """Return what an output shows as text: MIME type (or stream name) -> text; images left out."""
    if output.output_type == "stream":
        return {output.name: output.text}
    if output.output_type == "error":
        return {"error": f"{output.ename}: {output.evalue}\n" + "\n".join(output.traceback)}
    return {kind: text for kind, text in output.data.items() if isinstance(text, str) and not kind.startswith("image/")}


def _clean(output: NotebookNode) -> None:
    """Cut the path of this checkout, so that files are named as the reader finds them."""
    for kind, text in texts(output).items():
        shorter = text.replace(f"{COURSE}{os.sep}", "")
        if output.output_type == "stream":
            output.text = shorter
        elif output.output_type != "error":
            output.data[kind] = shorter


def _inspect(cell: NotebookNode, output: NotebookNode) -> None:
    for kind, text in texts(output).items():
        where = f"the cell that starts with {cell.source.splitlines()[0]!r}"
        if kind in ("stderr", "error"):
            raise Failed(f"{where} wrote to {kind}:\n{text}")
        path = ABSOLUTE_PATH.search(text)
        if path:
            raise Failed(f"{where} shows a path of this machine: {path.group()}")


def _shrink(output: NotebookNode) -> None:
    """Reduce pictures to a palette, so that a notebook stays small."""
    png = output.get("data", {}).get("image/png")
    if png is None:
        return
    smaller = io.BytesIO()
    image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    # Pillow's own method takes the mean of what lies close together, and blue and green lines for one.
    few = image.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(smaller, "PNG", optimize=True)
    output.data["image/png"] = base64.b64encode(smaller.getvalue()).decode()


def device() -> dict[str, str]:
    """Return backend, device and date, as kept in a notebook's metadata."""
    if backend.name() == "gpu":
        about = timing.machine()
        return {"backend": "gpu", "device": about["device"], "date": about["date"]}
    return {"backend": "simulator", "device": "simulator", "date": datetime.date.today().isoformat()}


def _write(path: Path, notebook: NotebookNode) -> None:
    nbformat.validate(notebook)
    unfinished = path.with_suffix(".tmp")
    nbformat.write(notebook, unfinished)
    os.replace(unfinished, path)


def _paths(name: str) -> list[Path]:
    """Return what the command line names: a notebook, by its path, or a lab's. ValueError when there is no such lab."""
    return [Path(name)] if name.endswith(".ipynb") else [lesson.notebook for lesson in find(name).lessons]


def _runs_here(lab: Lab) -> bool:
    if not lab.needs_gpu or timing.gpu_count() >= lab.gpus:
        return True
    print(f"{lab.slug} is left out: it runs on {lab.runs_on}, and this machine has {timing.gpu_count()}.")
    return False


def main(argv: list[str] | None = None) -> int:
    """Return the exit code: 0, 1 when a notebook failed, 2 when one does not exist."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.execute_notebooks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("notebooks", nargs="*", metavar="LAB", help="number, topic or slug, or a path; default: all")
    parser.add_argument("--check", action="store_true", help="execute, but write nothing")
    parser.add_argument("--timeout", type=int, default=TIMEOUT, metavar="SECONDS", help="limit of one cell")
    arguments = parser.parse_args(argv)
    try:
        paths = [path for name in arguments.notebooks for path in _paths(name)]
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    paths = paths or [lesson.notebook for lab in labs() if _runs_here(lab) for lesson in lab.lessons]
    missing = [str(path) for path in paths if not path.is_file()]
    if missing or not paths:
        print(f"error: no such notebook: {', '.join(missing) or NOTEBOOKS}", file=sys.stderr)
        return 2

    about = device()
    print(f"Running on {about['device']}.", flush=True)
    failed = 0
    for path in paths:
        print(f"{path.name} ...", end=" ", flush=True)
        start = time.perf_counter()
        try:
            notebook = execute(nbformat.read(path, as_version=4), arguments.timeout)
        except Failed as failure:
            failed += 1
            print(f"FAILED\n{failure}", flush=True)
            continue
        cells, kept = len(code_cells(notebook)), "checked, not written"
        if not arguments.check:
            # What the kernel reports of itself differs from machine to machine; the course's is fixed.
            notebook.metadata = nbformat.from_dict(
                {
                    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                    "language_info": {"name": "python"},
                    "warplab": about,
                }
            )
            _write(path, conceal(notebook))
            kept = f"written, {path.stat().st_size / 1e3:.0f} kB"
        print(f"{cells} code cells, {time.perf_counter() - start:.1f} s, {kept}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())

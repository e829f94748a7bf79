"""A program under Nsight Compute's command line, and the metrics of each kernel that it launches."""

import csv
import io
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warpcourse.paths import COURSE


@dataclass(frozen=True)
class ProfiledLaunch:
    """One launch. `kernel`, `grid` and `block` are as ncu writes them; `metrics`: value of each metric by name."""

    kernel: str
    grid: str
    block: str
    metrics: dict[str, float]


def profiled(command: Sequence[str], metrics: Iterable[str]) -> list[ProfiledLaunch]:
    """Run `command` under ncu; return its launches between cudaProfilerStart and cudaProfilerStop, in order.

    The program runs in the course's folder. Clocks are not fixed, which would need more permissions. Raises
    RuntimeError, with ncu's output, when ncu fails.
    """
    metrics = list(dict.fromkeys(metrics))
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        ncu = ["ncu", "--clock-control", "none", "--profile-from-start", "off", "--target-processes", "all"]
        ncu += ["--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log)]
        ncu += ["--metrics", ",".join(metrics)]
        done = subprocess.run([*ncu, *command], capture_output=True, text=True, cwd=COURSE)
        output = log.read_text() if log.exists() else ""
    if done.returncode:
        raise RuntimeError(f"ncu ended with code {done.returncode}:\n{output[-4000:]}\n{done.stdout}\n{done.stderr}")
    return parse(output, metrics)


def parse(output: str, metrics: Iterable[str]) -> list[ProfiledLaunch]:
    """Return launches in ncu's raw page as CSV: a line of names, a line of units, then a line per launch."""
    metrics = list(metrics)
    lines = output.splitlines()
    first = next((k for k, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        raise RuntimeError(f"there is no table in ncu's output:\n{output}")
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[first:]))))[1:]
    return [
        ProfiledLaunch(
            row["Kernel Name"],
            row["Grid Size"],
            row["Block Size"],
            {metric: float(row[metric].replace(",", "")) for metric in metrics},
        )
        for row in rows
    ]


def version() -> str:
    """Return the version of the ncu on the PATH, such as "2025.3.1.0"."""
    done = subprocess.run(["ncu", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split("Version ")[-1].split()[0]

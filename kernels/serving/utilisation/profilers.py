"""Two profilers' reports of one program, read and laid side by side.

Nsight Systems (`nsys`) draws when what ran: it finds the waiting between kernels. Nsight Compute (`ncu`) runs one
kernel again and again and counts: it finds why that kernel takes so long. Both follow nvprof and the Visual Profiler,
which know no GPU from Ampere on. profilers.md reads a report of each, of `profiled_program`, recorded in reports/.

`read_report` takes the text that `ncu` prints. `by_kernel` joins a timeline (`traces`) and a report by kernel.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernels.serving.utilisation import traces
from kernels.serving.utilisation.three_roads import chosen
from kernels.serving.utilisation.traces import Span

REPORTS = Path(__file__).with_name("reports")
NSIGHT_COMPUTE = REPORTS / "nsight_compute.txt"
TIMELINE = REPORTS / "timeline.json"
ORIGIN = "recorded on NVIDIA H100 80GB HBM3, 2026-11-23"
SPEED, OCCUPANCY = "GPU Speed Of Light Throughput", "Occupancy"
_HEAD = re.compile(r"^  (\S.*?) \((\d+), (\d+), (\d+)\)x\((\d+), (\d+), (\d+)\), Context")
_SECTION = re.compile(r"^    Section: (.+)$")
_ROW = re.compile(r"^    (\S.*?)  +(?:(\S+) +)?(-?[\d,.]+)\s*$")
_ADVICE = re.compile(r"^    (OPT|INF|WRN) +(.*)$")


@dataclass(frozen=True)
class Report:
    """What ncu printed of one launch. `sections`: name -> metric -> (value, unit). `advice`: its rules' remarks."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    sections: Mapping[str, Mapping[str, tuple[float, str]]]
    advice: Sequence[str] = field(default_factory=tuple)

    def value(self, section: str, metric: str) -> float:
        """Return a metric's value, in its unit. KeyError lists what the section holds."""
        try:
            return self.sections[section][metric][0]
        except KeyError:
            held = ", ".join(self.sections.get(section, self.sections))
            raise KeyError(f"the report of {self.kernel} has no {metric!r} in {section!r}; there are: {held}") from None

    @property
    def memory(self) -> float:
        """Return the share of the peak of the busiest part of the memory system."""
        return self.value(SPEED, "Memory Throughput") / 100

    @property
    def compute(self) -> float:
        """Return the share of the peak of the busiest part of the SMs."""
        return self.value(SPEED, "Compute (SM) Throughput") / 100

    @property
    def occupancy(self) -> float:
        """Warps that an SM held, of those it has room for, while it held any."""
        return self.value(OCCUPANCY, "Achieved Occupancy") / 100

    @property
    def road(self) -> str:
        """Memory, instructions or latency, by the rule of `three_roads`."""
        return chosen(self.memory, self.compute)


def read_report(text: str) -> list[Report]:
    """Return the launches in what `ncu` printed (page "details"). ValueError where there is none."""
    found: list[Report] = []
    section: dict[str, tuple[float, str]] = {}
    advice: list[str] = []
    for line in text.splitlines():
        if head := _HEAD.match(line):
            sizes = tuple(map(int, head.groups()[1:]))
            advice = []
            found.append(Report(head[1], sizes[:3], sizes[3:], {}, advice))
        elif not found:
            continue
        elif name := _SECTION.match(line):
            section = {}
            sections: Any = found[-1].sections
            sections[name[1].strip()] = section
        elif remark := _ADVICE.match(line):
            advice.append(remark[2].strip())
        elif advice and line.startswith("          ") and line.strip() and not _ROW.match(line):
            advice[-1] += " " + line.strip()
        elif row := _ROW.match(line):
            metric, unit, number = row.groups()
            # Two rows may have one name and different units, as "Memory Throughput" in % and in bytes per second.
            if metric not in section:
                section[metric] = (float(number.replace(",", "")), unit or "")
    if not found:
        raise ValueError("this text holds no launch; print it with `ncu --page details`, ncu's default")
    return found


def by_kernel(spans: Sequence[Span], reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Return a row per kernel of the timeline: its part of the whole, and what Nsight Compute says of a launch of it.

    `share`: of the time from the first span on the GPU to the last. `faster`: how many times as fast the program would
    be if that kernel took no time (Amdahl). `memory`, `compute`, `occupancy`, `road`: None where no report has it.
    """
    gpu = traces.on_gpu(spans)
    if not gpu:
        raise ValueError("the timeline has no span on a GPU; profile with CUDA activities")
    whole = max(span.end for span in gpu) - min(span.start for span in gpu)
    by_name = {report.kernel.partition("(")[0]: report for report in reports}
    rows = []
    for row in traces.summary([span for span in gpu if span.kind == traces.KERNEL]):
        share = row["seconds"] / whole
        report = by_name.get(row["name"].partition("(")[0])
        told = {name: getattr(report, name, None) for name in ("memory", "compute", "occupancy", "road")}
        rows.append(
            {
                "kernel": row["name"],
                "count": row["count"],
                "seconds": row["seconds"],
                "share": share,
                "faster": 1 / (1 - share) if share < 1 else float("inf"),
                **told,
            }
        )
    return rows


def recorded_profiles() -> tuple[list[Span], list[Report]]:
    """Return the timeline and the report of `profiled_program` in reports/. `ORIGIN` says where they are from."""
    return traces.read(TIMELINE), read_report(NSIGHT_COMPUTE.read_text())

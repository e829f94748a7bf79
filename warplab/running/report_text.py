"""The report of a session as text for a terminal."""

import os
from collections.abc import Iterable
from textwrap import fill

from warplab.launch.profile_queries import shorten
from warplab.running.collected import Report
from warplab.simulator.count.counters import COUNTERS
from warplab.text.tables import TIMES, count, duration, percent, ratio, shape

WIDTH = 110
_LABELS = {counter.name: counter.label for counter in COUNTERS}
# Counters in every kernel's report, where they are not 0; --json has all.
_SHOWN = (
    *("warp_instructions", "global_load_requests", "global_load_sectors", "global_store_requests"),
    *("global_store_sectors", "shared_load_requests", "shared_atomic_requests", "global_atomic_requests"),
    *("divergent_branches", "barriers", "tensor_operations"),
)
_SHOWN_RATIOS = ("sectors_per_load_request", "sectors_per_store_request", "bank_conflicts", "warp_efficiency")


def text(report: Report, what: str) -> str:
    """Return the whole report; `what` ran, such as "script.py"."""
    kernels, defects = report["kernels"], report["defects"]
    stopped = [d for d in defects if (d["kernel"] and not d["suppressed"]) or d["error"] == "InvalidLaunch"]
    names = {(d["kernel"], d["kernel_file"]) for d in stopped if d["kernel"]}
    names -= {(kernel["kernel"], kernel["file"]) for kernel in kernels}
    launches = sum(kernel["launches"] for kernel in kernels) + sum(defect["times"] for defect in stopped)
    counted = [defect for defect in defects if not defect["suppressed"]]
    found = [defect for defect in counted if not defect["refused"]]
    known = _number(len(kernels) + len(names), "kernel")
    head = f"Warp Lab ran {what} on the simulator: {known}, {_number(launches, 'launch')}"
    head += f", {_number(len(found), 'defect')}"
    if len(counted) < len(defects):
        head += f" ({len(defects) - len(counted)} suppressed)"
    if len(found) < len(counted):
        head += f", {len(counted) - len(found)} stopped unchecked"
    parts = [head + "."]
    if not kernels and not defects:
        others = " CuPy's array operations and calls of other libraries are none here."
        parts.append("No kernel was launched to its end." + others * (not what.endswith((".cu", ".cuda"))))
    parts += [_kernel(kernel, defects) for kernel in kernels]
    parts += [_defect(defect) for defect in defects]
    parts += [f"No defect was suppressed by this line: {entry}" for entry in report.get("unmet", ())]
    worth: dict[str, dict[str, None]] = {}  # by what is said of several cards alike
    for one in (estimate for kernel in kernels for estimate in kernel["estimates"]):
        worth.setdefault(one["worth"].replace(f" the {one['card']}:", " {}:"), {})[f"the {one['card']}"] = None
    parts += [fill(said.replace("{}", " or ".join(cards)), WIDTH) for said, cards in worth.items()]
    return "\n\n".join(parts)


def _kernel(kernel: Report, defects: list[Report]) -> str:
    name = kernel["kernel"]
    size = f"{shape(kernel['grid'])} {TIMES} {shape(kernel['block'])}"
    own = [d for d in defects if (d["kernel"], d["kernel_file"]) == (name, kernel["file"])]
    lines = [f"{name} ({shown_path(kernel['file'])}), {_number(kernel['launches'], 'launch')}, the costliest {size}"]
    told = (d["error"] + f" at line {d['line']}" * bool(d["line"]) for d in own if not d["suppressed"])
    excused = {d["error"]: f"; {d['error']} suppressed, and no other looked for" for d in own if d["suppressed"]}
    rows = [("checks", ("; ".join(told) or "passed") + "".join(excused.values()))]
    rows.append(("counters", ", ".join(_counters(kernel))))
    for line in kernel["lines"]:
        where = f"{percent(line['share']):>7} of {line['of']}: {os.path.basename(line['path'])}:{line['line']}"
        rows.append(("costly", f"{where}  {shorten(line['code'], 50)}".rstrip()))
    for one in kernel["estimates"]:
        rows.append(("time", f"about {duration(one['seconds'])} on the {one['card']}, limited by {one['limit']}"))
    rows += [("note", note) for note in kernel["notes"]]
    indent = " " * 12
    for label, value in rows:
        lines.append(
            fill(value, WIDTH, initial_indent=f"  {label:<10}", subsequent_indent=indent, break_long_words=False)
        )
    return "\n".join(lines)


def _counters(kernel: Report) -> Iterable[str]:
    for name in _SHOWN:
        if kernel["counters"][name]:
            yield f"{_LABELS[name]} {count(kernel['counters'][name])}"
    for name in _SHOWN_RATIOS:
        value = kernel["ratios"].get(name)
        if value is not None:
            shown = {"warp_efficiency": percent, "bank_conflicts": count}.get(name, ratio)(value)
            yield f"{name.replace('_', ' ')} {shown}"


def _defect(defect: Report) -> str:
    times = f" ({defect['times']} times)" if defect["times"] > 1 else ""
    head = "suppressed: " if defect["suppressed"] else ""
    lines = [f"{head}{defect['error']}{times}: {defect['message']}"]
    if defect["path"] and defect["line"]:
        lines.append(f"  in {shown_path(defect['path'])}:{defect['line']}")
    if defect["launched_at"] and tuple(defect["launched_at"]) != (defect["path"], defect["line"]):
        lines.append(f"  launched at {shown_path(defect['launched_at'][0])}:{defect['launched_at'][1]}")
    return "\n".join(lines)


def shown_path(path: str) -> str:
    """Return a path as short as it can be read from here."""
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    return path if relative.startswith("..") else relative


def _number(number: int, what: str) -> str:
    plural = "es" if what.endswith("ch") else "s"
    return f"{count(number)} {what}{plural * (number != 1)}"

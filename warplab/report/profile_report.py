"""What a profile says, as a table: `text(profile)` for a terminal, `html(profile)` for a notebook.

Both take a profile (anything with `.launches`) or one `LaunchProfile`. Launches of the same kernel with the same grid,
block and counts share a column. Up to four columns stand side by side, more stand one below the other.
"""

from statistics import median
from textwrap import fill

from warplab.launch.launch_record import LaunchRecord
from warplab.launch.profile_queries import (
    bank_conflicts,
    launches,
    sectors,
    sectors_per_request,
    shorten,
    size,
    source_lines,
)
from warplab.simulator.count.counters import COUNTERS
from warplab.text.tables import TIMES, Column, Table, count, document, duration, paragraph, percent, ratio

NOTE = (
    "Instructions are machine instructions, estimated from PTX; "
    "requests and sectors of memory are those that the hardware counts."
)
SAMPLED = (
    "Where only some blocks were simulated, their counters are scaled to the whole grid: exact if the blocks "
    "between the first and the last ones do the same, else an estimate."
)
EMPTY = "No kernel was launched inside this profile."
SIDE_BY_SIDE = 4

# Derived rows: the counter that each follows, label, property of Counts, format, metric of Nsight Compute.
DERIVED = (
    (
        "thread_instructions",
        "warp efficiency",
        "warp_efficiency",
        percent,
        "smsp__thread_inst_executed_per_inst_executed.ratio / 32",
    ),
    (
        "global_load_bytes",
        "sectors per load request",
        "sectors_per_load_request",
        ratio,
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
    ),
    (
        "global_load_bytes",
        "load efficiency",
        "load_efficiency",
        percent,
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
    ),
    (
        "global_store_bytes",
        "sectors per store request",
        "sectors_per_store_request",
        ratio,
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
    ),
    (
        "global_store_bytes",
        "store efficiency",
        "store_efficiency",
        percent,
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
    ),
)
# Rows of `LaunchProfile.footprint`: the counter that each follows, label, key, the metric whose least value it is.
DISTINCT = (
    ("global_load_bytes", "distinct bytes loaded", "global_load_bytes", "dram__bytes_read.sum"),
    ("global_store_bytes", "distinct bytes stored", "global_store_bytes", "dram__bytes_write.sum"),
)
ALWAYS = {"warp_instructions", "thread_instructions"}
# Rows of launches that `warplab.launch.resources` was asked about: key of `static`, label, metric of Nsight Compute.
RESOURCES = (
    ("registers", "registers per thread", "launch__registers_per_thread"),
    ("local_bytes", "local memory per thread, bytes", ""),
    ("spill_bytes", "spills, bytes", ""),
    ("shared_bytes", "shared memory per block, bytes", "launch__shared_mem_per_block_static + _dynamic"),
)


def text(profile: object) -> str:
    """Return the report as plain text, for a terminal."""
    parts = []
    for title, table in _sections(profile):
        parts.append("\n".join(filter(None, (title, table.text()))))
    return "\n\n".join([*parts, *(fill(note, 110) for note in _notes(profile))] if parts else [EMPTY])


def html(profile: object) -> str:
    """Return the report as HTML, for a notebook."""
    parts = []
    for title, table in _sections(profile):
        parts += [paragraph(title)] * bool(title) + [table.html()]
    notes = [paragraph(note, muted=True) for note in _notes(profile)]
    return document([*parts, *notes] if parts else [paragraph(EMPTY)])


def _notes(profile: object) -> list[str]:
    firsts = [group[0] for group in _groups(profile)]
    mixes = [
        f"Warp instructions{f' of {f.kernel}, {size(f)}' if len(firsts) > 1 else ''}: {_mix(f)}."
        for f in firsts[:SIDE_BY_SIDE]
        if _mix(f)
    ]
    return [*mixes, NOTE] + [SAMPLED] * any(launch.sampled for launch in launches(profile))


def _sections(profile: object) -> list[tuple[str, Table]]:
    """List the report's tables with their titles: counters, then source lines."""
    groups = _groups(profile)
    titled = len(groups) > 1
    sections = [("", _counter_table(groups))] if 0 < len(groups) <= SIDE_BY_SIDE else []
    for group in groups:
        if len(groups) > SIDE_BY_SIDE:
            sections.append(("", _counter_table([group])))
        sections += [s for s in _line_tables(group[0], titled) if s not in sections]
    return sections


def _groups(profile: object) -> list[list[LaunchRecord]]:
    """Group launches with equal counts, in order of first appearance."""
    groups: dict[tuple, list[LaunchRecord]] = {}
    for launch in launches(profile):
        key = (
            launch.kernel,
            launch.grid,
            launch.block,
            tuple(launch.counts.as_dict().values()),
            launch.gpu_name,
            launch.sampled,
        )
        groups.setdefault(key, []).append(launch)
    return list(groups.values())


def _counter_table(groups: list[list[LaunchRecord]]) -> Table:
    firsts = [group[0] for group in groups]
    rows = [[f"grid {TIMES} block", *map(size, firsts), ""]]
    if any(f.gpu_seconds is not None for f in firsts):
        rows.append(["time on the GPU", *(_gpu_time(group) for group in groups), ""])
        rows.append(["GPU", *(f.gpu_name or "" for f in firsts), ""])
    if any(f.sampled for f in firsts):
        rows.append(["blocks simulated", *(_blocks(f) for f in firsts), ""])
    for counter in COUNTERS:
        # A launch that was only timed has counted nothing; every kernel executes at least one instruction.
        values = [getattr(f.counts, counter.name) if f.counts.warp_instructions else None for f in firsts]
        if any(values) or counter.name in ALWAYS:
            rows.append([counter.label, *("–" if v is None else count(v) for v in values), counter.ncu])
        for after, label, name, form, metric in DERIVED:
            derived = [getattr(f.counts, name) for f in firsts]
            if after == counter.name and any(d is not None for d in derived):
                rows.append([label, *map(form, derived), metric])
        for after, label, key, metric in DISTINCT:
            bytes_ = [f.footprint.get(key, 0) for f in firsts]
            if after == counter.name and any(bytes_):
                rows.append([label, *map(count, bytes_), f"{metric}, with empty caches"])
        if counter.name == "tensor_operations":
            rows += _product_rows(firsts)
    if any("registers" in f.static for f in firsts):
        rows.append(["machine code for", *(f"sm_{f.static['arch']}" if "arch" in f.static else "" for f in firsts), ""])
        for key, label, metric in RESOURCES:
            values = [f.static.get(key) if "registers" in f.static else None for f in firsts]
            rows.append([label, *("" if v is None else count(v) for v in values), metric])
    heads = [
        f.kernel + (f" ({TIMES} {len(group)})" if len(group) > 1 else "")
        for f, group in zip(firsts, groups, strict=True)
    ]
    columns = [Column("", "left"), *(Column(h) for h in heads), Column("in Nsight Compute", "left", True, True)]
    return Table(columns, rows, caption="Counters by launch")


def _product_rows(firsts: list[LaunchRecord]) -> list[list[str]]:
    """Make one row for each kind of matrix product."""
    names = sorted({name for f in firsts for name in f.tensor_operations})
    return [[f"products {name}", *(count(f.tensor_operations.get(name, 0)) for f in firsts), ""] for name in names]


def _mix(launch: LaunchRecord) -> str:
    """List the shares of the warp instructions by kind, the largest first; "" where they are not known."""
    total = sum(launch.mix.values())
    parts = sorted(launch.mix.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{kind} {100 * n / total:.0f} %" for kind, n in parts if n) if total else ""


def _blocks(launch: LaunchRecord) -> str:
    ran, total = launch.sampled or (0, 0)
    return f"{count(ran)} of {count(total)}" if ran else "all"


def _gpu_time(group: list[LaunchRecord]) -> str:
    times = [launch.gpu_seconds for launch in group if launch.gpu_seconds is not None]
    if not times:
        return ""
    return duration(median(times)) + (f" (median of {len(times)})" if len(times) > 1 else "")


def _line_tables(launch: LaunchRecord, titled: bool) -> list[tuple[str, Table]]:
    """Make one table by source line for each source file of the launch, with its title."""
    files = sorted({file for file, line in launch.lines if line})
    titles = [
        ", ".join(filter(None, (f"{launch.kernel}, {size(launch)}" * titled, file * (len(files) > 1))))
        for file in files
    ]
    return [(title, _line_table(launch, file)) for title, file in zip(titles, files, strict=True)]


def _line_table(launch: LaunchRecord, file: str) -> Table:
    counted = sorted((line, counts) for (f, line), counts in launch.lines.items() if f == file and line)
    code = source_lines(launch, file, [line for line, _ in counted])
    divergent = any(c.divergent_branches for _, c in counted)
    shared = any(bank_conflicts(c) is not None for _, c in counted)
    rows = []
    for line, counts in counted:
        moved = sectors(counts)
        row = [str(line), shorten(code[line]), count(counts.warp_instructions)]
        row += [count(moved) if moved else "", ratio(sectors_per_request(counts))]
        conflicts = bank_conflicts(counts)
        row += ["" if conflicts is None else count(conflicts)] * shared
        rows.append(row + [count(counts.divergent_branches) if counts.divergent_branches else ""] * divergent)
    columns = [Column("line"), Column("source", "left", code=True), Column("warp instructions")]
    columns += [Column("sectors"), Column("per request")]
    columns += [Column("bank conflicts")] * shared + [Column("divergent branches")] * divergent
    marked = set()
    for column, value in ((2, lambda c: c.warp_instructions), (3, sectors), *[(5, bank_conflicts)] * shared):
        values = [value(counts) or 0 for _, counts in counted]
        if max(values) > 0 and len(values) > 1:
            marked |= {(row, column) for row, v in enumerate(values) if v == max(values)}
    return Table(columns, rows, marked, f"{launch.kernel} by source line")

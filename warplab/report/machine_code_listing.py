"""How machine code is shown beside its source: an overview by source line, and a listing in the order of addresses."""

import linecache
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from warplab.compile.disassembler import MachineInstruction
from warplab.compile.source_files import display_name
from warplab.simulator.ptx.inlining import readable
from warplab.text.tables import Column, Table

SPACES = {"LDG": "global", "STG": "global", "LDS": "shared", "STS": "shared", "LDL": "local", "STL": "local"}
_WIDTH = re.compile(r"\.(32|64|128|U8|S8|U16|S16)(?=\.|$)")
_BITS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16}
# What a line is looked through for; integers compute addresses and count loops.
_NOTABLE = re.compile(
    r"(LD|ST|ATOM|RED|TEX|SULD|SUST|UTMA|UBLK|SHFL|VOTE|MATCH|BAR|WARPSYNC|SYNCS)\w*$|[FDHIQB]G?MMA$|MUFU$"
    r"|[FD](FMA|ADD|MUL|SETP|MNMX)$|H(FMA2|ADD2|MUL2|MNMX2)$"
)
_CONSTANTS = ("LDC", "ULDC", "LDCU")
_MOST_KINDS, _WIDEST = 5, 60
_SLOW_PATH = re.compile(r"__cuda_sm\d+\w*?_(dblrcp|drsqrt|dsqrt|div|rcp|sqrt|rsqrt|rem)(?:_|$)")
_OPERATIONS = {
    "div": "division",
    "rem": "remainder",
    "rcp": "reciprocal",
    "dblrcp": "reciprocal",
    "sqrt": "square root",
    "dsqrt": "square root",
    "rsqrt": "reciprocal square root",
    "drsqrt": "reciprocal square root",
}
_STYLE = (
    "<style>.warplab-sass div{max-height:32em;overflow:auto}"
    ".warplab-sass table{border-collapse:collapse;margin:.3em 0}"
    ".warplab-sass td,.warplab-sass th{text-align:left!important;vertical-align:top;padding:1px 10px;white-space:pre;"
    "font-family:var(--jp-code-font-family,monospace);color:inherit}"
    ".warplab-sass th{font-weight:600}.warplab-sass tr{border-top:1px solid var(--jp-border-color2,#8884)}"
    ".warplab-sass td.n{opacity:.75;text-align:right!important}.warplab-sass .m{opacity:.75}"
    ".warplab-sass p{margin:.2em 0}.warplab-sass summary{cursor:pointer;margin:.2em 0}</style>"
)
# A stripe for each source line, as Compiler Explorer colours them; the line's number says the same.
_STRIPES = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#eeca3b", "#9d755d")


def access(row: MachineInstruction) -> tuple[str, str, int] | None:
    """Return memory, "load" or "store", and bits per thread of a load or store; None for other instructions."""
    opcode = row.opcode.split(".")[0]
    if opcode not in SPACES:
        return None
    width = _WIDTH.search(row.opcode)
    bits = 32 if width is None else _BITS.get(width[1]) or int(width[1])
    return SPACES[opcode], "load" if opcode.startswith("LD") else "store", bits


def function_name(name: str) -> str:
    """Return what a function is called in words, of its name in machine code:
    `$__internal_0_$__cuda_sm20_rcp_rn_f32_slowpath` → "slow path of a reciprocal", `$kernel$_Z5twicef` → "twice()"."""
    found = _SLOW_PATH.search(name)
    if found:
        what = f"a {_OPERATIONS[found[1]]}"
        return f"slow path of {what}" if "slowpath" in name else what
    return f"{readable(name.rpartition('$')[2])}()"


class Source:
    """The source text of machine code. `texts`: those of files that are on no disk, by name."""

    def __init__(self, rows: Sequence[MachineInstruction], texts: Mapping[str, str]) -> None:
        self._own = rows[0].file if rows else ""
        self._texts = texts

    def line(self, file: str, line: int) -> str:
        """Return a line without its indent, "" where it is not known."""
        text = self._texts.get(file) or self._texts.get(display_name(file))
        lines = text.splitlines() if text else linecache.getlines(file)
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""

    def place(self, file: str, line: int) -> str:
        """Return the line's number, with the file's name for another than the kernel's own; "" for none."""
        if not line:
            return ""
        return str(line) if file == self._own else f"{display_name(file)}:{line}"

    def places(self, at: Iterable[tuple[str, int]]) -> str:
        """Return several lines: "12, 15"."""
        return ", ".join(filter(None, dict.fromkeys(self.place(*one) for one in at)))


@dataclass(frozen=True)
class Block:
    """Neighbouring instructions of one source line. `title`: says which function begins here, "" for none."""

    file: str
    line: int
    callers: tuple[tuple[str, int], ...]
    title: str
    rows: tuple[MachineInstruction, ...]


def blocks(rows: Sequence[MachineInstruction], source: Source) -> list[Block]:
    """Cut a listing where the source line changes or a function begins."""
    calls: dict[str, list[tuple[str, int]]] = {}
    for row in rows:
        if row.called:
            calls.setdefault(row.called, []).append((row.file, row.line))
    found: list[Block] = []
    for row in rows:
        title = ""
        if row.function:
            places = source.places(calls.get(row.function, ()))
            title = function_name(row.function) + (f", called from line {places}" if places else "")
        last = found[-1] if found else None
        if last and not title and (last.file, last.line, last.callers) == (row.file, row.line, row.callers):
            found[-1] = Block(last.file, last.line, last.callers, last.title, (*last.rows, row))
        else:
            found.append(Block(row.file, row.line, row.callers, title, (row,)))
    return found


def to_see(rows: Sequence[MachineInstruction], spills: bool) -> str:
    """Return what stands out in the code of a line: loads and stores with their width, arithmetic, predicates, loops.

    `spills`: whether the kernel has spills, so that local memory holds some.
    """
    kinds: Counter[str] = Counter()
    for row in rows:
        found = access(row)
        name = row.opcode.split(".")[0]
        if found:
            space, kind, bits = found
            local = "spill " if space == "local" and spills else f"{space} "
            kinds[f"{local}{kind} of {bits} bits"] += 1
        elif _NOTABLE.match(name) and name not in _CONSTANTS and "RZ, RZ" not in row.text:
            kinds[name] += 1
    parts = [f"{number} × {kind}" if number > 1 else kind for kind, number in kinds.most_common(_MOST_KINDS)]
    predicated = sum(bool(row.predicate) for row in rows if row.opcode.split(".")[0] not in ("BRA", "EXIT"))
    if predicated:
        parts.append(f"{predicated} predicated")
    called = dict.fromkeys(
        function_name(row.called) for row in rows if row.called and not _SLOW_PATH.search(row.called)
    )
    return ", ".join(parts + [f"calls {name}" for name in called])


def _is_rare(row: MachineInstruction) -> bool:
    """Return whether it is code that the assembler adds for arguments that the line's own code does not cover."""
    return bool(_SLOW_PATH.search(row.inside))


def overview(rows: Sequence[MachineInstruction], source: Source, backwards: set[int], spills: bool) -> Table:
    """Return a row for each source line, in the order of the source. `backwards`: addresses of the jumps backwards."""
    lines: dict[tuple[str, int], list[MachineInstruction]] = {}
    for row in rows:
        lines.setdefault((row.file, row.line), []).append(row)
    table = [Column("line"), Column("instructions"), Column("source", "left", code=True), Column("what", "left")]
    body = []
    own = rows[0].file if rows else ""
    for file, line in sorted(lines, key=lambda at: (at[0] != own, *at)):
        here = [row for row in lines[file, line] if not _is_rare(row)]
        rare = Counter(function_name(row.inside) for row in lines[file, line] if _is_rare(row))
        inlined = source.places(row.callers[0] for row in here if row.callers)
        what = [to_see(here, spills)]
        what += ["jump back: a loop"] * any(row.address in backwards for row in here)
        what += [f"inlined in line {inlined}"] * bool(inlined)
        what += [f"{number} more in the {name}" for name, number in rare.items()]
        body.append([source.place(file, line), str(len(here)), source.line(file, line), ", ".join(filter(None, what))])
    return Table(table, body, caption="Machine code by source line")


def text(head: str, rows: Sequence[MachineInstruction], source: Source, table: Table) -> str:
    """Return the overview, then a line for each instruction, with the source at its right where the line changes."""
    found = blocks(rows, source)
    width = min(max((len(row.text) for row in rows), default=0), _WIDEST)
    lines = [head, "", table.text(), ""]
    for block in found:
        if block.title:
            lines.append(f"{'':9} {block.title}:")
        beside = _beside(block, source)
        for k, row in enumerate(block.rows):
            code = f"{row.label:>9} {row.address:04x}  {row.text}"
            lines.append(f"{code:{width + 17}} {beside}".rstrip() if k == 0 else code)
    return "\n".join(lines)


def html(head: str, rows: Sequence[MachineInstruction], source: Source, table: Table) -> str:
    """Return the overview and the listing, each in a box that scrolls, also by keyboard."""
    stripes: dict[tuple[str, int], str] = {}
    for at in sorted({(row.file, row.line) for row in rows if row.line}):
        stripes[at] = _STRIPES[len(stripes) % len(_STRIPES)]
    body = []
    for block in blocks(rows, source):
        if block.title:
            body.append(f'<tr><td></td><td></td><td class="m">{escape(block.title)}:</td></tr>')
        code = "\n".join(f"{row.label:>8} {row.address:04x}  {row.text}" for row in block.rows)
        stripe = f"border-left:4px solid {stripes.get((block.file, block.line), 'transparent')}"
        place = source.place(block.file, block.line) + _inlined(block, source)
        line = escape(source.line(block.file, block.line)) if block.line else ""
        body.append(
            f'<tr><td class="n" style="{stripe}">{escape(place)}</td><td>{line}</td><td>{escape(code)}</td></tr>'
        )
    listing = f"<table><tr><th>line</th><th>source</th><th>machine code (SASS)</th></tr>{''.join(body)}</table>"
    return (
        f'<div class="warplab-sass">{_STYLE}<p>{escape(head)}</p>'
        f"<details open><summary>By source line</summary>"
        f'<div tabindex="0">{table.html()}</div></details>'
        f'<div tabindex="0">{listing}</div></div>'
    )


def _inlined(block: Block, source: Source) -> str:
    return f" in {source.place(*block.callers[0])}" if block.callers else ""


def _beside(block: Block, source: Source) -> str:
    place = source.place(block.file, block.line)
    return f"{place + _inlined(block, source):>5}  {source.line(block.file, block.line)}" if place else ""

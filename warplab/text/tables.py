"""Small tables that read well as text in a terminal and as HTML in a notebook, and their number formats.

The HTML takes its colours from the page, so that it fits JupyterLab's light and dark themes; without its style
sheet, as on GitHub, it is a plain table.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape

TIMES = "\N{MULTIPLICATION SIGN}"
THIN = "\N{NARROW NO-BREAK SPACE}"
MICRO = "\N{MICRO SIGN}"
MARK = "\N{BLACK LEFT-POINTING TRIANGLE}"

STYLE = (
    # JupyterLab aligns the cells of tables to the right by a rule of higher rank; hence !important.
    "<style>.warplab table{border-collapse:collapse;margin:0 0 .6em}"
    ".warplab td,.warplab th{padding:1px 8px;border:0;text-align:right;white-space:pre;color:inherit}"
    ".warplab .l{text-align:left!important}.warplab .c{font-family:var(--jp-code-font-family,monospace)}"
    ".warplab caption{caption-side:top;text-align:left;font-weight:700}"
    ".warplab .m{opacity:.65;font-size:90%}.warplab p{margin:.2em 0}"
    ".warplab .h{font-weight:700;box-shadow:inset 0 -2px currentColor}</style>"
)


@dataclass
class Column:
    """A column. `align`: "left" or "right". `code`: in the font of code. `muted`: paler than the rest."""

    header: str
    align: str = "right"
    code: bool = False
    muted: bool = False


@dataclass
class Table:
    """A table. `rows`: one string per column. `marked`: the (row, column) pairs to highlight. `caption`: in HTML."""

    columns: list[Column]
    rows: list[list[str]]
    marked: set[tuple[int, int]] = field(default_factory=set)
    caption: str = ""

    def text(self) -> str:
        cells = [[c.header for c in self.columns]] if any(c.header for c in self.columns) else []
        cells += [
            [
                cell + (" " + MARK if (r, c) in self.marked else "  " * bool(self._marks(c)))
                for c, cell in enumerate(row)
            ]
            for r, row in enumerate(self.rows)
        ]
        widths = [max(len(row[c]) for row in cells) for c in range(len(self.columns))]
        lines = []
        for row in cells:
            padded = [
                cell.ljust(width) if column.align == "left" else cell.rjust(width)
                for cell, width, column in zip(row, widths, self.columns, strict=True)
            ]
            lines.append("  ".join(padded).rstrip())
        return "\n".join(lines)

    def html(self) -> str:
        def cells(tag: str, row: list[str], r: int) -> str:
            out = []
            for c, (cell, column) in enumerate(zip(row, self.columns, strict=True)):
                classes = "l" * (column.align == "left")
                classes += " c" * (column.code and tag == "td") + " m" * column.muted + " h" * ((r, c) in self.marked)
                # Said in the cell, too: JupyterLab drops the style sheets of outputs that it does not trust.
                style = ' style="text-align:left"' if column.align == "left" else ""
                scope = ' scope="col"' if tag == "th" else ""
                out.append(f'<{tag} class="{classes.strip()}"{style}{scope}>' if classes else f"<{tag}{scope}>")
                out.append(f"{escape(cell)}</{tag}>")
            return f"<tr>{''.join(out)}</tr>"

        head = [c.header for c in self.columns]
        top = f"<thead>{cells('th', head, -1)}</thead>" if any(head) else ""
        top = f"<caption>{escape(self.caption)}</caption>{top}" if self.caption else top
        return f"<table>{top}<tbody>{''.join(cells('td', row, r) for r, row in enumerate(self.rows))}</tbody></table>"

    def _marks(self, column: int) -> bool:
        return any(c == column for _, c in self.marked)


def document(parts: list[str]) -> str:
    """Return the HTML of one output: the style sheet and `parts`, which are HTML already."""
    return f'<div class="warplab">{STYLE}{"".join(parts)}</div>'


def paragraph(text: str, muted: bool = False) -> str:
    tag = '<p class="m">' if muted else "<p>"
    return f"{tag}{escape(text)}</p>"


def markdown(headers: Iterable[str], rows: Iterable[Iterable[object]], *, numbers: bool = False) -> str:
    """Return a table in Markdown. `numbers`: all columns but the first are aligned to the right."""
    headers = list(headers)
    rule = ["---", *(["---:" if numbers else "---"] * (len(headers) - 1))]
    lines = [headers, rule, *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def count(value: int) -> str:
    """Write 1048576 as "1 048 576", with narrow spaces."""
    return f"{value:,}".replace(",", THIN)


def ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
SMALL_PREFIXES = ((1.0, ""), (1e-3, "m"), (1e-6, MICRO), (1e-9, "n"))


def quantity(value: float, unit: str) -> str:
    """Write `value` to three digits with a decimal prefix, none below 1: 12582912, "B" as "12.6 MB"."""
    scale, prefix = next(((s, p) for s, p in PREFIXES if abs(value) >= s), (1.0, ""))
    return f"{_three_digits(value / scale)} {prefix}{unit}"


def duration(seconds: float) -> str:
    """Write 0.00000376 as "3.76 us", with the micro sign."""
    small = next(((s, p) for s, p in SMALL_PREFIXES if abs(seconds) >= s), SMALL_PREFIXES[-1])
    scale, prefix = small if seconds else SMALL_PREFIXES[0]
    return f"{_three_digits(seconds / scale)} {prefix}s"


def _three_digits(value: float) -> str:
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def shape(dims: tuple[int, ...]) -> str:
    """Write (256, 1, 1) as "256", (16, 16, 1) as "(16, 16)"."""
    dims = tuple(dims)
    while len(dims) > 1 and dims[-1] == 1:
        dims = dims[:-1]
    return count(dims[0]) if len(dims) == 1 else "(" + ", ".join(count(d) for d in dims) + ")"

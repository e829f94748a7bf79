"""Hidden tests in the text of a cell: where they are, and the cell without them."""

from __future__ import annotations

from collections.abc import Iterator

BEGIN, END = "BEGIN HIDDEN TESTS", "END HIDDEN TESTS"  # nbgrader's marks


def without_hidden_tests(source: str) -> str:
    """A cell as the release has it: the lines from a begin mark to its end mark, or to the end, left out."""
    return "\n".join(line for line, hidden in marked_lines(source) if not hidden)


def marked_lines(source: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is hidden; the marks are."""
    inside = False
    for line in source.split("\n"):
        if BEGIN in line:
            inside = True
        yield line, inside or END in line
        if END in line:
            inside = False

"""Hidden tests in the text of a cell: their lines, and the cell without them."""

from collections.abc import Iterator

BEGIN, END = "BEGIN HIDDEN TESTS", "END HIDDEN TESTS"  # nbgrader's marks


def without_hidden_tests(source: str) -> str:
    """Return a cell as the release has it, without the lines from a begin mark to its end mark or the cell's end."""
    return "\n".join(line for line, hidden in marked_lines(source) if not hidden)


def marked_lines(source: str) -> Iterator[tuple[str, bool]]:
    """Yield each line and whether it is hidden, as the marks themselves are."""
    inside = False
    for line in source.split("\n"):
        if BEGIN in line:
            inside = True
        yield line, inside or END in line
        if END in line:
            inside = False

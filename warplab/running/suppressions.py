"""`--suppress FILE`: defects that are known and do not count.

Each line has patterns of a kernel's name, an error's class and its place; `*` stands for any text, a missing column for
`*`, `#` begins a comment:

    sum_volatile  DataRace           reduce.py:42
    *             UninitializedRead
"""

from pathlib import Path

from warplab import simulator
from warplab.launch.policy import Suppression

_ERRORS = sorted(n for n, kind in vars(simulator).items() if isinstance(kind, type) and issubclass(kind, Exception))


def read(path: str) -> list[Suppression]:
    """Return the entries of a file. Raises ValueError for a line that is none, OSError for a file that is not there."""
    found = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        columns = line.partition("#")[0].split()
        if not columns:
            continue
        if len(columns) > 3:
            raise ValueError(f"{path}, line {number}: {len(columns)} columns; write kernel, error and file:line")
        if len(columns) > 1 and "*" not in columns[1] and columns[1] not in _ERRORS:
            raise ValueError(
                f"{path}, line {number}: there is no error {columns[1]}; choose among {', '.join(_ERRORS)}"
            )
        if len(columns) > 2 and ":" not in columns[2]:
            raise ValueError(f"{path}, line {number}: {columns[2]} is no place; write file:line, such as reduce.py:*")
        found.append(Suppression(*columns))
    return found

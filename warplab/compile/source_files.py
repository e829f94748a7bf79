"""Names and texts of the source files that PTX refers to, as errors and reports show them.

A notebook cell is shown as "cell [5]", a file by its base name, whatever path the compiler wrote.
"""

import ast
import inspect
import linecache
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import PurePath
from types import FrameType

from warplab.simulator.ptx.parser import file_name

_paths: dict[tuple[str, str], str] = {}  # label and text of a file -> where it is
_FILE = re.compile(r'^(\s*\.file\s+\d+\s+)"([^"]*)"', re.MULTILINE)
_ASSEMBLY = re.compile(r"// begin inline asm$.*?// end inline asm$", re.MULTILINE | re.DOTALL)
_PLACE = re.compile(r"^\s*\.loc\s.*\n", re.MULTILINE)


def label_files(ptx: str, texts: dict[str, str] | None = None) -> tuple[str, dict[str, str]]:
    """Return `ptx` with display names in its .file directives, and the text of each such file.

    `texts`: texts of files that are not on disk, by the names that the compiler was given. All lines of inline assembly
    have its statement's place: LLVM counts on from there, line by line (Triton's masked loads are such assembly).
    """
    texts = texts or {}
    labels: dict[str, str] = {}  # as in the PTX, not yet by file_name
    for path in dict.fromkeys(path for _, path in _FILE.findall(ptx)):
        label = path if file_name(path) in texts else display_name(path)
        if label in labels.values():
            label = "/".join(PurePath(path).parts[-2:])
        labels[path] = label
    labelled = _FILE.sub(lambda match: f'{match[1]}"{labels[match[2]]}"', ptx)
    labelled = _ASSEMBLY.sub(lambda match: _PLACE.sub("", match[0]), labelled)
    names = {file_name(path): file_name(label) for path, label in labels.items()}
    found = {label: texts.get(path) or "".join(linecache.getlines(path)) for path, label in names.items()}
    _paths.update({(label, found[label]): path for path, label in names.items() if path not in texts})
    return labelled, found


def read(path: str) -> tuple[str, str]:
    """Return the label of a source file and its text, "" if there is no such file; `path_of` knows the path."""
    label, text = PurePath(path).name, "".join(linecache.getlines(path))
    _paths[label, text] = path
    return label, text


def path_of(label: str, text: str) -> str | None:
    """Return the path, as the compiler wrote it, of a file that `label_files` has called `label`; None if unknown."""
    return _paths.get((label, text))


def display_name(filename: str) -> str:
    """Return "cell [5]" for a notebook cell's file name, the base name for any other."""
    number = _cell_numbers().get(filename)
    return f"cell [{number}]" if number is not None else PurePath(filename).name or filename


def shared_array_names(function: Callable, symbols: list[str]) -> dict[str, str]:
    """Map the symbols to which Numba compiled shared arrays to their names in the Python kernel `function`.

    Numba numbers them in source order. The map is empty where the source does not tell, as with device functions that
    have shared arrays of their own.
    """
    if not symbols:
        return {}
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return {}
    made = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func).endswith("shared.array")
    ]
    targets = [node.targets[0] for node in sorted(made, key=lambda node: node.lineno)]
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    ordered = sorted(symbols, key=lambda name: int("0" + re.sub(r".*\D", "", name)))
    return dict(zip(ordered, names, strict=True)) if len(ordered) == len(names) else {}


def is_cell(filename: str) -> bool:
    return filename in _cell_numbers()


def current_cell_name() -> str:
    """Return the display name of the notebook cell that is running, "cell" outside of one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_cell(frame.f_code.co_filename):
        frame = frame.f_back
    return "cell" if frame is None else display_name(frame.f_code.co_filename)


def _cell_numbers() -> dict[str, int]:
    shell = _shell()
    return {} if shell is None else getattr(shell.compile, "_filename_map", {})


def _shell():
    # Outside IPython nothing is imported for it.
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None

"""Lesson 05: each sitting runs from the lesson's first code cell, without the other's sections."""

import ast
import builtins
import re

import nbformat
import pytest

from kernels.tensor_core.lab import LAB

SECOND = ("3", "7", "9")  # sections of the second sitting, and the one to read
KERNEL = re.compile(r"(?:__global__ void|struct|class) +(\w+)")


def sections():
    """Yield each code cell with the section that it stands in; "" before the first."""
    section = ""
    for cell in nbformat.read(LAB.notebook, as_version=4).cells:
        if cell.cell_type == "code":
            yield section, cell
        elif heading := re.match(r"## (?:(\d)\.|Verdict)", cell.source):
            section = heading[1] or "verdict"


def names(source):
    """Return the names that a cell defines, anywhere in it, and those that it uses."""
    if source.startswith("%%cuda"):
        return set(KERNEL.findall(source)), set()
    nodes = [*ast.walk(ast.parse(source))]
    defined = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    defined |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    defined |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    defined |= {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            defined |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return defined, {node.id for node in nodes if isinstance(node, ast.Name)} - defined


@pytest.mark.parametrize("second", [False, True], ids=["first", "second"])
def test_a_sitting_needs_nothing_of_the_other(second):
    known, missing = {*dir(builtins), "display"}, []
    for section, cell in sections():
        if section and (section in SECOND) != second:
            continue
        defined, used = names(cell.source)
        missing += [(section, cell.id, name) for name in sorted(used - known)]
        known |= defined
    assert missing == []

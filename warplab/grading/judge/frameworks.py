"""Instructors' cells that use TensorFlow: which they are, and what of them the judge leaves to the student's process.

An exercise uses TensorFlow if a locked cell without points, or the given text of an answer, imports it. Its submissions
run in processes that have it (`limits.for_tensorflow`, `zygote.WARMTHS`). The judge never imports it: its tests get
NumPy arrays.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import symtable
from collections.abc import Iterable, Mapping

from IPython.core.inputtransformer2 import TransformerManager

MODULES = frozenset(("tensorflow", "keras"))


def uses_tensorflow(*cells: Mapping[str, str]) -> bool:
    """Return whether one of the instructor's cells imports TensorFlow. `cells`: their text, by id."""
    for source in itertools.chain.from_iterable(group.values() for group in cells):
        if any(name in source for name in MODULES):
            with contextlib.suppress(SyntaxError):  # told when the cell runs
                if any(map(imported, ast.walk(ast.parse(TransformerManager().transform_cell(source))))):
                    return True
    return False


def imported(node: ast.AST) -> bool:
    """Return whether a node is an import of TensorFlow or a part of it."""
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in MODULES for alias in node.names)
    return isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] in MODULES


def left_to_student(trees: Iterable[ast.Module]) -> tuple[set[str], set[str]]:
    """Remove from setup cells every statement that needs TensorFlow: those that import it or use what such a one binds.

    Return the names of TensorFlow's modules and parts, and all other names that the removed statements bind. The order
    of the cells does not matter.
    """
    trees = list(trees)
    modules: set[str] = set()
    others: set[str] = set()
    found = -1
    while found != len(modules) + len(others):
        found = len(modules) + len(others)
        for tree in trees:
            kept = []
            for statement in tree.body:
                table = symtable.symtable(ast.unparse(statement), "<setup>", "exec")
                if not any(map(imported, ast.walk(statement))) and not (_read(table) & (modules | others)):
                    kept.append(statement)
                    continue
                bound = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
                if isinstance(statement, ast.Import | ast.ImportFrom):
                    modules |= bound
                else:
                    others |= bound
            tree.body = kept
    return modules, others


def _read(table: symtable.SymbolTable) -> set[str]:
    """Return the global names that a statement, or a function in it, reads."""
    names = {s.get_name() for s in table.get_symbols() if s.is_referenced() and (s.is_global() or _is_module(table))}
    return names.union(*map(_read, table.get_children()))


def _is_module(table: symtable.SymbolTable) -> bool:
    return table.get_type() == "module"

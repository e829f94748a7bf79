"""Instructors' cells that use a framework: which they are, and what of them the judge leaves to the student's process.

An exercise uses a framework if a locked cell without points, or the given text of an answer, imports it.
"""

import ast
import contextlib
import itertools
import symtable
from collections.abc import Iterable, Mapping

from IPython.core.inputtransformer2 import TransformerManager

from warpcourse.grading.frameworks import FRAMEWORKS, Framework

_BY_MODULE = {module: framework for framework in FRAMEWORKS for module in framework.modules}


def framework_of(*cells: Mapping[str, str]) -> Framework | None:
    """Return the framework that one of the instructor's cells imports. `cells`: their text, by id."""
    for source in itertools.chain.from_iterable(group.values() for group in cells):
        if any(name in source for name in _BY_MODULE):
            with contextlib.suppress(SyntaxError):  # told when the cell runs
                found = imported(ast.parse(TransformerManager().transform_cell(source)))
                if found is not None:
                    return found
    return None


def imported(tree: ast.AST) -> Framework | None:
    """Return the framework that a statement in `tree` imports, whole or a part of it."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        for name in names:
            if name.partition(".")[0] in _BY_MODULE:
                return _BY_MODULE[name.partition(".")[0]]
    return None


def left_to_student(trees: Iterable[ast.Module]) -> tuple[dict[str, Framework], set[str]]:
    """Remove from setup cells each statement that needs a framework: that imports it or uses what such a one binds.

    Return the names of the frameworks' modules and parts, each with its framework, and all other names that the removed
    statements bind. The order of the cells does not matter.
    """
    trees = list(trees)
    modules: dict[str, Framework] = {}
    others: set[str] = set()
    found = -1
    while found != len(modules) + len(others):
        found = len(modules) + len(others)
        for tree in trees:
            kept = []
            for statement in tree.body:
                table = symtable.symtable(ast.unparse(statement), "<setup>", "exec")
                framework = imported(statement)
                if framework is None and not _read(table) & (modules.keys() | others):
                    kept.append(statement)
                    continue
                bound = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
                if framework is not None and isinstance(statement, ast.Import | ast.ImportFrom):
                    modules |= dict.fromkeys(bound, framework)
                else:
                    others |= bound
            tree.body = kept
    return modules, others


def definitions(source: str) -> str:
    """Return the imports and the functions of a locked cell, which can run again without changing anything else."""
    tree = ast.parse(TransformerManager().transform_cell(source))
    tree.body = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef)]
    return ast.unparse(tree)


def _read(table: symtable.SymbolTable) -> set[str]:
    """Return the global names that a statement, or a function in it, reads."""
    names = {s.get_name() for s in table.get_symbols() if s.is_referenced() and (s.is_global() or _is_module(table))}
    return names.union(*map(_read, table.get_children()))


def _is_module(table: symtable.SymbolTable) -> bool:
    return table.get_type() == "module"

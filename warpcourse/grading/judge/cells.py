"""Trusted cells: their statements, the names they use, and a runner for them in the judge's own process.

The runner runs one statement at a time, and so knows whether a failure belongs to the hidden tests.
"""

import __future__

import ast
import builtins
import contextlib
import io
import linecache
import resource
import signal
import symtable
import threading
import traceback
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

from warpcourse.grading.judge.hidden_tests import marked_lines

# Line magics that do not affect a test's result.
_IGNORED_MAGICS = frozenset(("autoreload", "config", "load_ext", "matplotlib", "precision", "reload_ext"))


class OutOfTime(BaseException):
    """A cell's time is up. Not an Exception, so that a test's `except` does not swallow it."""


class TrustedCell:
    """A cell of the instructor's. `file`: its name in tracebacks. Raises SyntaxError."""

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source, self.file = name, source, f"<cell {name}>"
        text = TransformerManager().transform_cell(source)
        self.quiet = text.rstrip().endswith(";")
        self.tree = ast.parse(text, self.file)
        self._hidden = [hidden for _, hidden in marked_lines(source)]
        if text.rstrip("\n").count("\n") != source.rstrip("\n").count("\n"):  # a magic took up several lines
            self._hidden = [any(self._hidden)] * len(self._hidden)
        self.find_names()
        linecache.cache[self.file] = (len(text), None, text.splitlines(keepends=True), self.file)

    def find_names(self) -> None:
        """Set `names` and `names_later` by the cell's statements."""
        self.names, self.names_later = self._free_names()

    def is_hidden(self, line: int) -> bool:
        """Return whether a line, counted from 1, is within the marks of hidden tests."""
        return 0 < line <= len(self._hidden) and self._hidden[line - 1]

    def hides(self, statement: ast.stmt) -> bool:
        """Return whether a statement, or a part of it, belongs to the hidden tests."""
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        return any(self.is_hidden(line) for line in range(first, (statement.end_lineno or first) + 1))

    def line(self, number: int) -> str:
        """Return a line of the cell, "" for a hidden one."""
        lines = self.source.split("\n")
        return lines[number - 1].strip() if 0 < number <= len(lines) and not self.is_hidden(number) else ""

    def _free_names(self) -> tuple[list[str], list[str]]:
        """Return the names that the cell reads without having bound them, and those that its functions read later.

        Built-in names are left out.
        """
        bound: set[str] = set()
        read: dict[str, None] = {}
        later: dict[str, None] = {}
        for statement in self.tree.body:
            table = symtable.symtable(ast.unparse(statement), self.file, "exec")
            here = [symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()]
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                here.append(statement.target.id)
            read.update(dict.fromkeys(name for name in here if name not in bound))
            for inner in table.get_children():
                later.update(dict.fromkeys(_globals_read(inner)))
            bound.update(s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported())
        later = {name: None for name in later if name not in bound and not hasattr(builtins, name)}
        read.update(later)
        return [name for name in read if not hasattr(builtins, name)], list(later)


def _globals_read(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_global() and symbol.is_referenced():
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _globals_read(inner)


@dataclass
class Outcome:
    """The outcome of running a cell.

    `printed`: text from visible statements. `muted`: visible statements printed text that was not kept. `result`: value
    of the last expression, None if there is none. `hidden`: the error arose in hidden tests. `place`: the visible lines
    of the cell in the error's traceback.
    """

    printed: str = ""
    muted: bool = False
    result: Any = None
    error: BaseException | None = None
    hidden: bool = False
    place: list[str] = field(default_factory=list)


class CellRunner:
    """A runner of trusted cells, all in one namespace.

    `output_bytes`: how much of a cell's printed text is kept. `memory_bytes`: how much memory a cell may use.
    """

    def __init__(self, output_bytes: int, memory_bytes: int) -> None:
        # A module, so that its definitions can be found by name as in a notebook.
        self._module = types.ModuleType("__main__")
        self.namespace: dict[str, Any] = self._module.__dict__
        self.namespace["get_ipython"] = lambda: _Shell(self.namespace)
        self._output_bytes, self._memory_bytes = output_bytes, memory_bytes
        self._cells: dict[str, TrustedCell] = {}
        self.in_hidden_tests = False  # is a hidden statement running?
        self.silent = False  # once set, no printed text is kept

    def missing(self, cell: TrustedCell) -> list[str]:
        """Return the names that a cell, or a function of an earlier one, needs and no trusted cell has bound."""
        later = [name for other in self._cells.values() for name in other.names_later]
        return [name for name in dict.fromkeys([*cell.names, *later]) if name not in self.namespace]

    def run(
        self, cell: TrustedCell, names: dict[str, Any], seconds: float, processor_seconds: float | None = None
    ) -> Outcome:
        """Run a cell with `names` added for its duration. Names that a trusted cell has bound keep their values.

        `seconds`: of wall clock. `processor_seconds`: of this process's processor time, the same by default.
        """
        self._cells[cell.file] = cell
        added = {name: value for name, value in names.items() if name not in self.namespace}
        self.namespace.update(added)
        outcome = Outcome()
        shown, muted, dropped = _Sink(self._output_bytes), _Sink(0), _Sink(0)
        try:
            with time_limit(seconds, processor_seconds or seconds), memory_limit(self._memory_bytes):
                flags = 0
                for statement in cell.tree.body:
                    self.in_hidden_tests = cell.hides(statement)
                    flags |= _future_flags(statement)
                    sink = dropped if self.in_hidden_tests else muted if self.silent else shown
                    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
                        outcome.result = self._run(cell, statement, flags)
        except (Exception, OutOfTime, SystemExit) as error:
            outcome.error = error
            frames = [(self._cells[f.filename], f.lineno) for f in _frames(error) if f.filename in self._cells]
            outcome.hidden = self.in_hidden_tests or any(own.is_hidden(line or 0) for own, line in frames)
            outcome.place = [f"line {line}: {own.line(line or 0)}" for own, line in frames if own is cell]
        finally:
            self.in_hidden_tests = False
            for name, value in added.items():
                if self.namespace.get(name) is value:
                    del self.namespace[name]
        outcome.printed, outcome.muted = shown.text(), muted.length > 0
        return outcome

    def _run(self, cell: TrustedCell, statement: ast.stmt, flags: int) -> Any:
        if statement is cell.tree.body[-1] and isinstance(statement, ast.Expr) and not cell.quiet:
            code = compile(ast.Expression(statement.value), cell.file, "eval", flags, dont_inherit=True)
            return eval(code, self.namespace)
        exec(compile(ast.Module([statement], []), cell.file, "exec", flags, dont_inherit=True), self.namespace)
        return None

    def close(self) -> None:
        """Forget the cells and everything they defined."""
        for file in self._cells:
            linecache.cache.pop(file, None)
        self._cells.clear()
        self.namespace.clear()


def _future_flags(statement: ast.stmt) -> int:
    if not isinstance(statement, ast.ImportFrom) or statement.module != "__future__":
        return 0
    return sum(getattr(__future__, alias.name).compiler_flag for alias in statement.names)


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), lookup_lines=False))


@contextlib.contextmanager
def time_limit(seconds: float, processor_seconds: float) -> Iterator[None]:
    """Raise OutOfTime when the wall clock or the processor time is up. Has an effect on the main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: types.FrameType | None) -> None:
        if number == signal.SIGALRM:
            raise OutOfTime(f"more than {seconds:.3g} s")
        raise OutOfTime(f"more than {processor_seconds:.3g} s of processor time")

    timers = ((signal.ITIMER_REAL, signal.SIGALRM, seconds), (signal.ITIMER_PROF, signal.SIGPROF, processor_seconds))
    before = {number: signal.signal(number, stop) for _, number, _ in timers}
    for timer, _, limit in timers:
        # Repeated every second, because an exception raised in a finalizer is lost.
        signal.setitimer(timer, max(limit, 0.001), 1.0)
    try:
        yield
    finally:
        for timer, number, _ in timers:
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


@contextlib.contextmanager
def memory_limit(more: int) -> Iterator[None]:
    """Raise MemoryError where this process would map more than `more` additional bytes.

    A test can inflate a student's answer: multiplying by a million makes a huge text where it expects a number.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        most = int(file.read().split()[0]) * resource.getpagesize() + more
    limits = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([most, *limits]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


class _Sink(io.TextIOBase):
    """A stream that keeps the first `most` characters."""

    def __init__(self, most: int) -> None:
        self._most, self.length = most, 0
        self._parts: list[str] = []

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        room = self._most - self.length
        if room > 0:
            self._parts.append(text[:room])
        self.length += len(text)
        return len(text)

    def text(self) -> str:
        lost = self.length - self._most
        note = f"\n[{lost:,} more characters are left out]\n" if lost > 0 and self._most else ""
        return "".join(self._parts) + note


class _Shell:
    """The part of IPython that the instructor's cells need: `%%cuda`, and line magics that may be ignored."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.user_ns = namespace

    def run_line_magic(self, name: str, line: str, *_: Any) -> None:
        if name not in _IGNORED_MAGICS:
            raise _no_magic(f"%{name}")

    def run_cell_magic(self, name: str, line: str, cell: str) -> None:
        if name != "cuda":
            raise _no_magic(f"%%{name}")
        from warplab.dropin import magic

        magic.run(self, line, cell)

    def push(self, variables: dict[str, Any], interactive: bool = True) -> None:
        self.user_ns.update(variables)

    def drop_by_id(self, variables: dict[str, Any]) -> None:
        for name, value in variables.items():
            if self.user_ns.get(name) is value:
                del self.user_ns[name]

    def system(self, command: str) -> None:
        raise RuntimeError("a cell of the tests cannot run shell commands")

    getoutput = system


def _no_magic(name: str) -> RuntimeError:
    return RuntimeError(f"a cell of the tests cannot use {name}, since it does not run in a notebook's kernel")

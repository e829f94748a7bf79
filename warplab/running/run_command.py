"""`python -m warplab run script.py [ARGUMENT ...]`: an unmodified program on the simulator, with a report at its end.

The script's own output and exit code stay what they are; the report goes to standard error. Exit code 1: a kernel has
a defect, or the script itself ends so. 2: nothing could be checked, as the script, a kernel or a package of an extra is
missing, or a kernel does not compile or is refused. A program in CUDA C++, prog.cu, goes to `warplab.program`.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import functools
import importlib
import os
import re
import resource
import runpy
import signal
import sys
import threading
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from warplab.dropin import imports
from warplab.extras import MissingExtra, needed_for
from warplab.running import session
from warplab.running.strictness import BOOKS, DEFAULT, SECONDS

FORMATS = ("json", "junit", "sarif")
_STANDINS = os.path.join(os.path.dirname(imports.__file__), "")
ADDRESS_SPACE = 3 << 29
C_PLUS_PLUS = (".cu", ".cuda", ".cpp", ".cc", ".cxx", ".c")


class BadInput(ValueError):
    """What `run` was given cannot be run; the message is the sentence that says so."""


def address_space() -> None:
    """Raise BadInput where no kernel could be compiled, or even NumPy be imported, in the memory that may be mapped."""
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if 0 <= most < ADDRESS_SPACE:
        raise BadInput(
            f"this process may map {most >> 20:,} MiB of memory (ulimit -v); compilers and the simulator need "
            f"{ADDRESS_SPACE >> 20:,}"
        )


class Parser(argparse.ArgumentParser):
    """A command's, which raises BadInput."""

    def error(self, message: str):
        raise BadInput(f"{message}; see {self.prog} --help")


def parser() -> argparse.ArgumentParser:
    also = "prog.cu [more.cu host.cpp] [-I... -D... -std=...] [-- ARGUMENT ...]: a program in CUDA C++"
    found = Parser(prog="python -m warplab run", description=__doc__.splitlines()[0], epilog=also)
    add_settings(found.add_argument, "--")
    for name in FORMATS:
        found.add_argument(f"--{name}", metavar="FILE", help=f"also write the report as {name.upper()}")
    rest = argparse.REMAINDER
    found.add_argument("-m", dest="module", metavar="MODULE", nargs=rest, help="run a module, as python -m does")
    found.add_argument("command", metavar="script.py|prog.cu ...", nargs=rest, help="it and its arguments")
    return found


def add_settings(add: Callable[..., Any], prefix: str) -> None:
    """Add the options that `settings` reads; those of pytest have another prefix."""
    more, less = (
        "estimate times for this card (H100); again for another",
        f"for one launch ({SECONDS:g}); inf: no limit",
    )
    add(f"{prefix}card", action="append", metavar="CARD", help=more)
    add(f"{prefix}strict", choices=list(BOOKS), default=DEFAULT, help=f"what counts as a defect ({DEFAULT})")
    add(f"{prefix}suppress", metavar="FILE", help="known defects: lines of kernel, error, file:line")
    add(f"{prefix}max-seconds", type=float, default=SECONDS, metavar="S", help=less)


def settings(card: list[str] | None, strict: str, suppress: str | None, max_seconds: float) -> session.Settings:
    """Return the settings of a session. Raises BadInput."""
    from warplab.hardware import cards
    from warplab.running import suppressions

    try:
        names = [name if "=" in name else one.name for name, one in ((n, cards.card(n)) for n in card or ["H100"])]
        lines = suppressions.read(suppress) if suppress else []
    except OSError as error:
        raise BadInput(f"{suppress} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise BadInput(str(error)) from None
    if not max_seconds >= 0:
        raise BadInput(f"--max-seconds={max_seconds:g}: give 0 or more, or inf for no limit")
    columns = [[one.kernel, one.error, one.place] for one in lines]
    return session.Settings(strict, names, max_seconds, columns)


def main(arguments: list[str]) -> int:
    before = _Before()
    try:
        chosen = parser().parse_args(arguments)
        address_space()
        program = _Program.of(chosen.module, chosen.command)
        made = session.begin(settings(chosen.card, chosen.strict, chosen.suppress, chosen.max_seconds))
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    files = {name: getattr(chosen, name) for name in FORMATS}

    def exit_now(status: int) -> NoReturn:
        os._exit = leave
        leave(_finish(made, program, status, files, before))

    leave, os._exit = os._exit, exit_now
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # what `timeout` and a CI end a program with
        signal.signal(signal.SIGTERM, _terminated)
        _watch_forks()
    try:
        code = program.run(made)
        # What Python does when main has ended, so that the report has all launches. There is no public way: a function
        # that atexit is given first runs last, but changes the exit code only by os._exit, which skips whatever modules
        # had registered before; and threads of a pool end by a list of threading's own.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except KeyboardInterrupt:
        code = 130
    except SystemExit as error:  # of the signal, at Python's end
        code = _exit_code(error)
    finally:
        os._exit = leave
        _end_by_default()
    return _finish(made, program, code, files, before)


def _terminated(number: int, frame: types.FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _end_by_default() -> None:
    if signal.getsignal(signal.SIGTERM) is _terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@functools.cache  # once: what is registered stays
def _watch_forks() -> None:
    os.register_at_fork(before=_hold, after_in_parent=_let, after_in_child=_let_end)


_masks = threading.local()  # of signals, of each thread that forks


def _hold() -> None:
    """Keep SIGTERM back while this thread forks: Python drops what reaches a child before it has begun."""
    _masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _let() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.before)


def _let_end() -> None:
    _end_by_default()
    _let()


class _Before:
    """What a program may change and the report needs: the current folder, where modules are found, standard error."""

    def __init__(self) -> None:
        self.folder, self.path, self.errors, self.process = os.getcwd(), sys.path[:], sys.stderr, os.getpid()

    def restore(self) -> None:
        with contextlib.suppress(Exception):  # None or closed
            sys.stdout.flush()
        for folder in (self.folder, "/"):
            with contextlib.suppress(OSError):
                os.chdir(folder)
                break
        here = ("", self.folder)  # last, and so behind Python's own modules
        sys.path[:] = [p for p in self.path if p not in here] + [p for p in self.path if p in here]
        from warplab.running.collected import is_program

        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in sys.stdlib_module_names and is_program(
                getattr(module, "__file__", None) or "<"
            ):
                del sys.modules[name]

    def say(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # standard error is closed
            print(text, file=self.errors)


class _Program:
    """A script or a module with its arguments. `refused`: what ended it, where that is no defect of a kernel."""

    def __init__(self, path: str, arguments: list[str], module: str = "") -> None:
        self.path, self.arguments, self.module = path, arguments, module
        self.refused = ""

    @classmethod
    def of(cls, module: list[str] | None, command: list[str]) -> _Program:
        """Return what the command line names. Raises BadInput."""
        if module is not None:
            if not module:
                raise BadInput("-m needs the name of a module")
            sys.path.insert(0, os.getcwd())
            return cls("", module[1:], module[0])
        if not command:
            raise BadInput("give a script: python -m warplab run script.py")
        path = command[0]
        if os.path.isdir(path):
            inside = os.path.join(path, "__main__.py")
            if not os.path.exists(inside):
                raise BadInput(f"{path} is a directory without a __main__.py: name the script in it that is to run")
            path = inside
        if not os.path.exists(path):
            raise BadInput(f"there is no file {path}")
        if path.endswith(".ipynb"):
            raise BadInput(f"{path} is a notebook: write `import warplab; warplab.install()` in its first cell")
        return (_CudaProgram if path.endswith(C_PLUS_PLUS) else cls)(path, command[1:])

    @property
    def name(self) -> str:
        return self.module or os.path.basename(self.path)

    def run(self, made: session.Session) -> int:
        """Run it as Python would; return its exit code. What it raises is printed as Python does, but for an error of
        a kernel, which is in the report, and of a launch, which is told by the program's own lines and a sentence."""
        from warplab.simulator.errors import SimulatorError

        try:
            with needed_for(self.name):
                self._execute()
        except SystemExit as error:
            return _exit_code(error)
        except (MissingExtra, BadInput) as error:
            self.refused = str(error)
            return 2
        except SimulatorError as error:
            imports.use("the simulator")
            if not error.in_report:
                made.collected.failed(error)
            return 1
        except KeyboardInterrupt:
            return 130
        except BaseException as error:
            if type(error).__module__.startswith("cuda.pathfinder"):
                self.refused = _of_the_driver(error, self.name)
                return 2
            if _is_of_a_compiler(error):
                self.refused = _of_a_kernel(error)
                _print_short(error)
                return 2
            if _is_refusal(error):
                own = _own_lines(error)
                self.refused = f"{own[-1]}: {error}" if own else str(error)
                return 2
            if isinstance(error, SyntaxError) and not _own_lines(error):
                line = f", line {error.lineno}" if error.lineno else ""
                self.refused = f"{error.filename or self.path}{line}: {error.msg}"
                return 2
            if not getattr(error, "in_report", False):
                (_print_short if hasattr(error, "_render_traceback_") else _print_as_python)(error)
            return 1
        return 0

    def _execute(self) -> None:
        if self.module:
            sys.argv = [self.module, *self.arguments]
            try:
                runpy.run_module(self.module, run_name="__main__", alter_sys=True)
            except ImportError as error:
                passed = {row.filename for row in traceback.extract_tb(error.__traceback__)}
                if passed - {__file__, imports.__file__, runpy.run_module.__code__.co_filename}:
                    raise
                raise BadInput(str(error)) from None  # there is no such module
            return
        sys.argv = [self.path, *self.arguments]
        folder = os.path.dirname(os.path.realpath(self.path))  # as Python: that of the file, not of a link to it
        if os.path.exists(os.path.join(folder, "numba_cuda" + ".py")):  # a usual name for a script, and the package's
            path, sys.path[:] = sys.path[:], [one for one in sys.path if os.path.abspath(one) != folder]
            with contextlib.suppress(ImportError):
                importlib.import_module("numba_cuda")
            sys.path[:] = path
        sys.path.insert(0, folder)
        main = types.ModuleType("__main__")
        main.__file__ = os.path.abspath(self.path)
        sys.modules["__main__"] = main
        code = compile(Path(self.path).read_bytes(), main.__file__, "exec", dont_inherit=True)
        exec(code, main.__dict__)


class _CudaProgram(_Program):
    """A program in CUDA C++: its first file, and its further files, compilers' options and arguments."""

    def __init__(self, path: str, arguments: list[str]) -> None:
        super().__init__(path, arguments)
        os.environ["WARPLAB_SHARED_ADDRESSES"] = "1"  # before the simulator is imported

    def run(self, made: session.Session) -> int:
        imports.use("CUDA C++")
        from warplab.program import run_program

        try:
            files, options, arguments = run_program.split_command([self.path, *self.arguments])
            for file in files:
                if not os.path.exists(file):
                    raise run_program.BuildError(f"there is no file {file}")
            code = run_program.run_program(files, options, arguments, made.settings.cards[0])
        except (run_program.BuildError, run_program.SourceError) as error:
            self.refused = str(error)
            return 2
        except SystemExit as error:
            return _exit_code(error)
        except KeyboardInterrupt:
            return 130
        except Exception as error:
            if not _is_of_a_compiler(error):
                raise
            print(error, file=sys.stderr)
            self.refused = _of_a_kernel(error)
            return 2
        if code >= 0:
            return code
        print(f"error: {self.name} was ended by signal {-code}", file=sys.stderr)
        return 128 - code


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1


def _is_of_a_compiler(error: BaseException) -> bool:
    """Return whether it says that a kernel is not there or does not compile, or that the simulator cannot run it."""
    from warplab.compile.errors import CompileError, CompilerNotFound
    from warplab.launch.errors import NoKernel
    from warplab.simulator.errors import SimulatorFailure

    if isinstance(error, CompileError | CompilerNotFound | NoKernel | SimulatorFailure):
        return True
    return type(error).__module__.startswith(("numba.", "numba_cuda_mlir.", "triton.")) and isinstance(error, Exception)


def _is_refusal(error: BaseException) -> bool:
    """Return whether a stand-in says that it lacks what the program asks for, or knows no time."""
    if not isinstance(error, AttributeError | ImportError | RuntimeError):  # NotImplementedError is of the last
        return False
    raised_in = traceback.extract_tb(error.__traceback__)[-1].filename
    return raised_in.startswith(_STANDINS) and bool(re.search(r"the simulator\b|stand-in", str(error)))


def _of_a_kernel(error: BaseException) -> str:
    from warplab.compile.short_traceback import first_line

    return f"a kernel could not be compiled or run: {first_line(error)}"


def _own_lines(error: BaseException) -> list[str]:
    """Return the program's lines that `error` has passed, as file:line."""
    from warplab.running.collected import is_program

    rows = [row for row in traceback.extract_tb(error.__traceback__) if os.path.exists(row.filename)]
    return [f"{os.path.basename(row.filename)}:{row.lineno}" for row in rows if is_program(row.filename)]


def _of_the_driver(error: BaseException, name: str) -> str:
    own = _own_lines(error)
    return (
        f"{own[-1] if own else name} calls NVIDIA's driver (cuda.core, cuda.bindings), which has no stand-in: launch "
        "its kernels by cupy.RawModule or numba.cuda"
    )


def _print_short(error: BaseException) -> None:
    from warplab.compile.short_traceback import short_traceback

    print("\n".join(short_traceback(error)), file=sys.stderr)


def _print_as_python(error: BaseException) -> None:
    """Hand the error to the program's sys.excepthook if it has one, or print the traceback without the frames of this
    module and of the hook that imports pass."""
    if sys.excepthook is not sys.__excepthook__:
        passed = error.__traceback__
        while passed is not None and passed.tb_frame.f_code.co_filename == __file__:
            passed = passed.tb_next
        with contextlib.suppress(Exception, SystemExit):
            return sys.excepthook(type(error), error, passed)
    told = traceback.TracebackException.from_exception(error)
    told.stack[:] = [frame for frame in told.stack if frame.filename not in (__file__, imports.__file__)]
    print("".join(told.format()), end="", file=sys.stderr)


def _finish(made: session.Session, program: _Program, code: int, files: dict[str, str | None], before: _Before) -> int:
    """Print the report and write the files; return the exit code. A process that was forked has no report."""
    if os.getpid() != before.process:
        return code
    before.restore()
    from warplab.running import report_files, report_text

    report = made.report()
    made.close()
    defects = [defect for defect in report["defects"] if not defect["suppressed"]]
    if any(not defect["refused"] for defect in defects):
        code = 1
    elif defects and code in (0, 1):
        code = 2
    if not program.refused or report["kernels"] or report["defects"]:
        before.say(f"\n{report_text.text(report, program.name)}")
    if program.refused:
        before.say(f"error: {program.refused}")
    for name, path in files.items():
        wrong = path and report_files.write(path, report_files.FORMATS[name](report, program.name, code))
        if wrong:
            before.say(f"error: the report {wrong}")
            code = code or 2
    return code

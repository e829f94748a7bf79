"""Stand-ins in a test cell for names of the student's notebook: values, kernels and functions.

A value is a fresh copy. A kernel is the PTX that the student's process compiled for the arguments at hand, and runs in
the judge's simulator. A function runs in the student's process, on copies of its arguments. Anything else is an
`Opaque`, which no test can use by mistake.
"""

import builtins
import hashlib
import importlib
import json
import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from warpcourse.grading.exchange import artefacts, numba_types
from warpcourse.grading.exchange.artefacts import ArtefactError, clean_text
from warpcourse.grading.student.agent import MAX_MESSAGE, PUBLIC_MODULES
from warplab import simulator
from warplab.checks.errors import CheckFailed
from warplab.compile import cuda_signature
from warplab.compile.ptx_assembler import Assembled
from warplab.launch import cuda_arguments, numba_arguments, profiling
from warplab.launch.errors import ArgumentError
from warplab.launch.kernel_source import BoundKernel
from warplab.launch.launch_record import Assemble
from warplab.launch.simulate import simulate

MISSING = object()
MAX_PTX = 4 << 20  # characters of a kernel's PTX
MAX_SOURCES = 2 << 20  # characters of the source files that it refers to
_MAX_NAME = 200
# What makes a kernel another one: the rest of its description is what was compiled, or nobody's.
_DESCRIBED = ("language", "name", "code", "file", "options", "signature", "parameters", "blank", "signatures")
_MAX_PARTS = 64  # parameters of a kernel, signatures, classes of an exception
# Exceptions whose constructors take more than a message.
_UNUSUAL = (UnicodeDecodeError, UnicodeEncodeError, UnicodeTranslateError, BaseExceptionGroup)

_UNREADABLE = "value that cannot be read"

Ask = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


class Notebook:
    """The student's process as test cells see it. `ask` sends wishes to its agent.

    The first test that takes a kernel decides which one the name stands for, until the next answer cell: otherwise a
    cell between two tests could give each test a kernel that meets that test alone.
    `kernels`: the PTX of each kernel that a test ran, by name and argument types. `redefined`: names of kernels that
    the process defined again between two tests. `odd`: of those of which it then said what no definition can mean.
    """

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.redefined: set[str] = set()
        self.odd: set[str] = set()
        self._taken: dict[str, RemoteKernel] = {}
        self.kernels: dict[str, str] = {}
        self._programs: dict[tuple, simulator.Program] = {}
        self._begun: set[tuple] = set()  # keys of programs that the latest test took
        self._given_up: set[tuple] = set()
        self._types: dict[str, list] = {}  # argument types of Numba kernels that tests have asked for so far

    def fetch(self, names: Sequence[str]) -> dict[str, Any]:
        """Return stand-ins for these names as they are now, without names that the notebook does not have."""
        self._begun.clear()
        wishes = [{"op": "describe", "name": name, "types": self._types.get(name, [])} for name in names]
        found = {}
        for name, answer in zip(names, self.ask(wishes) if wishes else [], strict=True):
            value = self._stand_in(name, answer)
            if name in self._taken:
                if self._taken[name].is_told_of_oddly(value):
                    self.odd.add(name)
                elif not self._taken[name].is_still(value):
                    self.redefined.add(name)
                value = self._taken[name]
            elif isinstance(value, RemoteKernel):
                self._taken[name] = value
            if value is not MISSING:
                found[name] = value
        return found

    def give_up(self) -> None:
        """Refuse from now on what the latest test did not get to run: reading it took too long."""
        for key in self._begun:
            entries = self._programs[key].entries.values() if key in self._programs else ()
            if all(entry.translated is None for entry in entries):
                self._given_up.add(key)

    def release(self, answer: str) -> None:
        """Let the names in an answer cell's given text stand for what they are now: that cell has just run."""
        words = set(re.findall(r"\w+", answer))
        self._taken = {name: kernel for name, kernel in self._taken.items() if name not in words}
        self.redefined -= words
        self.odd -= words

    def _stand_in(self, name: str, answer: dict[str, Any]) -> Any:
        kind = answer["kind"]
        if kind == "missing":
            return MISSING
        try:
            if kind == "value":
                return artefacts.decode(answer.get("value"))
            if kind == "module" and answer.get("name") in PUBLIC_MODULES.values():
                return _module(answer["name"])
            if kind == "function":
                return RemoteFunction(self, name, answer)
            if kind == "kernel":
                source = CudaArtefact if answer.get("language") == CudaArtefact.language else NumbaArtefact
                return RemoteKernel(source(self, name, answer))
        except (ArtefactError, RecursionError) as error:
            return Opaque(name, _UNREADABLE, str(error))
        if kind != "opaque":  # the agent says nothing else
            return Opaque(name, _UNREADABLE, _short(answer.get("why"), ""))
        return Opaque(name, _short(answer.get("type"), "object"), _short(answer.get("why"), ""))

    def wanted(self, name: str, kinds: list) -> None:
        """Note that a test wants a Numba kernel for these types: the next `fetch` brings its PTX along."""
        known = self._types.setdefault(name, [])
        if kinds not in known:
            known.append(kinds)

    def entry(self, kernel: str, compiled: dict[str, Any] | None) -> simulator.Entry:
        """Load what the agent compiled and return its entry. Raises what the compiler raised there."""
        if compiled is None:
            raise ArtefactError(f"the process of the notebook gave no PTX for {kernel}")
        if compiled.get("kind") == "raised":
            raise _exception(compiled)
        ptx, entry, sources = compiled.get("ptx"), compiled.get("entry"), compiled["sources"]
        if ptx is None or len(ptx) > MAX_PTX:
            raise ArtefactError(f"the PTX of {kernel} has more than {MAX_PTX:,} characters, or there is none")
        texts = {clean_text(k): clean_text(v) for k, v in sources.items()}
        if sum(len(k) + len(v) for k, v in texts.items()) > MAX_SOURCES:
            texts = {}
        key = (ptx, *texts.items())
        if key in self._given_up:
            raise simulator.UnsupportedInstruction(
                f"too much PTX in {kernel}, or too entangled: an earlier test took too long to read it"
            )
        self._begun.add(key)
        if key not in self._programs:
            self._programs[key] = simulator.load(ptx, texts)
        found = self._programs[key].entries.get(entry or "")
        if found is None:
            raise ArtefactError(f"the PTX of {kernel} has no entry for it")
        return found


# -- kernels -------------------------------------------------------------------------------------------------


class _Artefact:
    """A kernel compiled in the student's process, with the interface of `launch.kernel_source`."""

    language: ClassVar[str]

    def __init__(self, notebook: Notebook, name: str, answer: dict[str, Any]) -> None:
        self.notebook, self._variable = notebook, name
        self.name = _short(answer.get("name"), name)
        self.blank = answer.get("blank") is True
        # Not the description itself, of which a hostile process can make gigabytes.
        described = json.dumps([answer.get(key) for key in _DESCRIBED], sort_keys=True)
        self.described = hashlib.sha256(described.encode()).digest()
        self.programs: dict[str, dict[str, Any] | None] = {}  # what the process compiled, by types

    def assembler(self, args: tuple) -> Assemble:
        return _no_assembler


def _no_assembler(arch: int) -> Assembled:
    raise ArgumentError("registers and occupancy cannot be tested here, since no assembler runs beside the tests")


class CudaArtefact(_Artefact):
    """A kernel in CUDA C++. `code`: its source."""

    language = "CUDA C++"

    def __init__(self, notebook: Notebook, name: str, answer: dict[str, Any]) -> None:
        super().__init__(notebook, name, answer)
        self.code = answer["code"] if type(answer.get("code")) is str else ""
        self._signature = _signature(answer.get("signature"))
        self.programs[""] = _compiled(answer.get("compiled"))

    def bind(self, args: tuple, arrays: Any) -> BoundKernel:
        compiled: Any = self.programs[""]
        entry = self.notebook.entry(self.name, compiled)
        self.notebook.kernels[self._variable] = compiled["ptx"]
        params = cuda_arguments.pack_arguments(self.name, entry, self._signature, args, arrays.address)
        return BoundKernel(entry, params, _no_assembler)


class NumbaArtefact(_Artefact):
    """A kernel in Python, compiled by Numba for each tuple of argument types that a test uses."""

    language = "Numba"

    def __init__(self, notebook: Notebook, name: str, answer: dict[str, Any]) -> None:
        super().__init__(notebook, name, answer)
        self.parameters = _names(answer.get("parameters"))
        self.signatures = None
        if answer.get("signatures") is not None:
            self.signatures = [
                tuple(numba_types.decode(kind) for kind in _list(signature))
                for signature in _list(answer["signatures"])
            ]
        for pair in _list(answer.get("compiled", [])):
            if type(pair) is list and len(pair) == 2:
                self.programs[json.dumps(pair[0])] = _compiled(pair[1])

    def bind(self, args: tuple, arrays: Any) -> BoundKernel:
        signature = numba_arguments.signature_of(self.name, self.parameters, self.signatures, args)
        kinds = [numba_types.encode(kind) for kind in signature]
        key = json.dumps(kinds)
        if key not in self.programs:
            if self._variable in self.notebook.redefined:
                raise CheckFailed(
                    f"{self.name} was defined again after a test had taken it, and cannot be compiled for this one.",
                    look_at=f"cells of your own that define {self._variable}: keep one definition, in the answer cell",
                    kind="compile",
                )
            self.notebook.wanted(self._variable, kinds)
            (answer,) = self.notebook.ask([{"op": "compile", "name": self._variable, "types": kinds}])
            self.programs[key] = _compiled(answer)
        compiled: Any = self.programs[key]
        entry = self.notebook.entry(self.name, compiled)
        types = ", ".join(map(numba_arguments.short_type, signature))
        self.notebook.kernels[f"{self._variable}({types})"] = compiled["ptx"]
        params = numba_arguments.pack_arguments(self.parameters, signature, args, arrays.address)
        return BoundKernel(entry, params, _no_assembler)


class RemoteKernel:
    """A student's kernel: `kernel[grid, block](*args)` of Numba, `kernel(grid, block, args)` of CUDA C++."""

    def __init__(self, source: CudaArtefact | NumbaArtefact) -> None:
        self._warplab_source = source
        self.__name__ = source.name

    def is_still(self, other: Any) -> bool:
        """Return whether the process means the same kernel by what it said of the name just now."""
        if not isinstance(other, RemoteKernel):
            return False
        mine, theirs = self._warplab_source, other._warplab_source
        both = mine.programs.keys() & theirs.programs.keys()
        return mine.described == theirs.described and all(mine.programs[key] == theirs.programs[key] for key in both)

    def is_told_of_oddly(self, other: Any) -> bool:
        """Return whether what the process now says cannot be read, or is other code of the same source."""
        if isinstance(other, RemoteKernel):
            same = self._warplab_source.described == other._warplab_source.described
            return same and self._warplab_source.language == CudaArtefact.language and not self.is_still(other)
        return isinstance(other, Opaque) and other.is_unreadable()

    def __getitem__(self, configuration: Any) -> Callable[..., None]:
        if self._warplab_source.language != "Numba":
            raise TypeError(f"{self.__name__} is launched as {self.__name__}(grid, block, args)")
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise ValueError(f"a launch is written {self.__name__}[blocks, threads_per_block](...)")
        grid, block, *more = configuration
        shared = more[1] if len(more) == 2 else 0
        return lambda *args: self._launch(grid, block, args, shared)

    def __call__(self, *args: Any, shared_mem: int = 0) -> None:
        if self._warplab_source.language == "Numba" or len(args) != 3:
            form = "[blocks, threads](...)" if self._warplab_source.language == "Numba" else "(grid, block, args)"
            raise ValueError(f"a launch is written {self.__name__}{form}")
        self._launch(*args, shared_mem)

    def _launch(self, grid: Any, block: Any, args: Any, shared_bytes: int) -> None:
        counters = profiling.active()
        profiling.record(simulate(self, grid, block, tuple(args), shared_bytes=shared_bytes, counters=counters))

    def __repr__(self) -> str:
        return f"<kernel {self.__name__} of the notebook>"


# -- functions and other values ------------------------------------------------------------------------------


class RemoteFunction:
    """A student's function. A call sends its arguments there, and returns or raises what comes back."""

    def __init__(self, notebook: Notebook, name: str, answer: dict[str, Any]) -> None:
        self._notebook, self._name = notebook, name
        self._warplab_on_the_host = answer.get("plain") is True
        self._warplab_blank = answer.get("blank") is True
        self._warplab_changed = False  # the arrays of its last call, of which the process has copies
        if type(answer.get("name")) is str:
            self.__name__ = name  # the test's name for it, which messages show

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        (outcome,) = self._outcomes([(args, kwargs)])
        return outcome()

    def _warplab_batch(self, inputs: Sequence[Mapping[str, Any]]) -> list[Callable[[], Any]]:
        """Call the function with each set of keyword arguments, in one request. Return the outcomes as functions."""
        return self._outcomes([((), dict(arguments)) for arguments in inputs])

    def _outcomes(self, calls: Sequence[tuple[tuple, dict]]) -> list[Callable[[], Any]]:
        wish = {
            "op": "call",
            "name": self._name,
            "calls": [[artefacts.encode(list(args)), artefacts.encode(kwargs)] for args, kwargs in calls],
        }
        (answer,) = self._notebook.ask([wish])
        self._warplab_changed = answer.get("changed") is True
        results = answer.get("results") if answer["kind"] == "results" else None
        if not isinstance(results, list) or len(results) != len(calls):
            results = [answer] * len(calls)
        return [self._outcome(result) for result in results]

    def _outcome(self, result: Any) -> Callable[[], Any]:
        def outcome() -> Any:
            kind = result.get("kind") if isinstance(result, dict) else None
            if kind == "value":
                try:
                    return artefacts.decode(result.get("value"))
                except ArtefactError as error:
                    return Opaque(f"{self._name}(...)", _UNREADABLE, str(error))
            if kind == "raised":
                raise _exception(result)
            if kind == "opaque":
                return Opaque(f"{self._name}(...)", _short(result.get("type"), "object"), _short(result.get("why"), ""))
            raise CheckFailed(f"{self._name} gave no answer that could be read.", kind="exception")

        return outcome

    def __repr__(self) -> str:
        return f"<function {self._name} of the notebook>"


class _NoAttribute(CheckFailed, AttributeError):
    """A failure that `getattr` with a default and `hasattr` take for a missing attribute."""


class Opaque:
    """An object of the notebook that is no plain data. Using it fails the test with a message."""

    def __init__(self, name: str, kind: str, why: str = "") -> None:
        object.__setattr__(self, "_text", (name, kind, why))

    def __repr__(self) -> str:
        return f"<{self._text[0]} of the notebook, a {self._text[1]}>"

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith(("__", "_warplab_")):
            raise AttributeError(attribute)
        raise self._failed(_NoAttribute)

    def is_unreadable(self) -> bool:
        return self._text[1] == _UNREADABLE

    def _failed(self, error: type[CheckFailed] = CheckFailed) -> CheckFailed:
        name, kind, why = self._text
        return error(
            f"{name} is a {kind}, which a test cannot take from the notebook.",
            expected="a kernel, a function, a number, text, a list, a dict or an array",
            got=why,
            kind="wrong type",
        )


def _refuse(self: Opaque, *args: Any, **kwargs: Any) -> Any:
    raise self._failed()


_OPERATIONS = (
    "call eq ne lt le gt ge bool len iter next contains getitem setitem delitem hash int float complex index abs neg "
    "pos invert add radd sub rsub mul rmul matmul rmatmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow and "
    "rand or ror xor rxor lshift rlshift rshift rrshift iadd isub imul array enter exit str format round"
)
for _operation in _OPERATIONS.split():
    setattr(Opaque, f"__{_operation}__", _refuse)


# -- reading the agent's answers -------------------------------------------------------------------------------


def _module(name: str) -> Any:
    if name in ("warplab.cuda", "warplab.cp"):
        from warplab.dropin import choice

        return choice.load(name.removeprefix("warplab."))
    return importlib.import_module(name)


def _short(text: Any, otherwise: str) -> str:
    return clean_text(text[:_MAX_NAME]) if type(text) is str else otherwise


def _list(data: Any) -> list:
    if type(data) is not list or len(data) > _MAX_PARTS:
        raise ArtefactError("a description of unknown form")
    return data


def _names(data: Any) -> list[str]:
    if not all(type(name) is str and name.isidentifier() and len(name) <= _MAX_NAME for name in _list(data)):
        raise ArtefactError("parameters of unknown form")
    return data


def _signature(data: Any) -> cuda_signature.Signature | None:
    """Return a kernel's declaration as the student's process read it from the source, None if it is unusable."""
    if type(data) is not dict or type(data.get("name")) is not str or type(data.get("parameters")) is not list:
        return None
    parameters = []
    for item in data["parameters"][:_MAX_PARTS]:
        if type(item) is not list or len(item) != 5:
            return None
        declaration, name, pointer, dtype, count = item
        if type(declaration) is not str or type(name) is not str or type(count) is not int or not 0 < count <= 16:
            return None
        known = None if dtype is None else artefacts.decode_dtype(dtype)
        parameters.append(
            cuda_signature.Parameter(_short(declaration, ""), _short(name, ""), pointer is True, known, count)
        )
    return cuda_signature.Signature(_short(data["name"], ""), tuple(parameters), True, False)


def _compiled(data: Any) -> dict[str, Any] | None:
    """Return what `Notebook.entry` reads of a compiled kernel, None for anything else."""
    if type(data) is not dict:
        return None
    kept = {key: data[key] for key in ("kind", "ptx", "entry", "message") if type(data.get(key)) is str}
    sources, classes = data.get("sources"), data.get("classes")
    kept["sources"] = {k: v for k, v in sources.items() if type(v) is str} if type(sources) is dict else {}
    kept["classes"] = [c for c in classes[:_MAX_PARTS] if type(c) is str] if type(classes) is list else []
    return kept


def _exception(answer: dict[str, Any]) -> Exception:
    """Return an exception like the student's: of the nearest built-in class, under its own name."""
    classes = answer.get("classes")
    classes = [name for name in classes if type(name) is str][:_MAX_PARTS] if type(classes) is list else []
    message = answer.get("message")
    message = clean_text(message[:MAX_MESSAGE]) if type(message) is str else ""
    base: type[Exception] = Exception
    for name in classes:
        known = getattr(builtins, name, None)
        if isinstance(known, type) and issubclass(known, Exception) and not issubclass(known, _UNUSUAL):
            base = known
            break
    own = classes[0] if classes and classes[0].isidentifier() and not keyword.iskeyword(classes[0]) else base.__name__
    made = type(own[:_MAX_NAME], (base,), {"__str__": lambda self: message, "__module__": "notebook"})
    return made(message)

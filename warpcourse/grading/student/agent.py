"""The agent, which answers the judge's questions inside a student's process.

It tells what the notebook's names stand for, the PTX of kernels, and the results of functions. It holds no secret, and
whatever it says is read as the student's word. Per request the judge evaluates `answer('{"do": [...]}')`.
Requests and answers are JSON, with values as in `artefacts`:

    {"op": "describe", "name": n, "types": [[kind, ...], ...]}  what `n` is; for a Numba kernel also PTX for these types
    {"op": "compile", "name": n, "types": [kind, ...]}          PTX of a Numba kernel for these types
    {"op": "call", "name": n, "calls": [[args, kwargs], ...]}   results of a function; has the last changed an array?
    {"op": "count", "next": i}                                  number the next cell i
    {"op": "define", "source": text}                            run definitions of locked cells again
"""

import contextlib
import io
import json
import linecache
import types
from collections.abc import Iterator
from typing import Any

from warpcourse.grading.exchange import artefacts, numba_types
from warpcourse.grading.exchange.artefacts import ArtefactError
from warpcourse.grading.student.tensors import without_tensors

MIME = "application/vnd.warplab.answer"
MAX_MESSAGE = 4000  # characters of an error's message
# Modules that a test may use though only the student's cells import them; the judge takes its own copies.
PUBLIC_MODULES = {
    "cmath": "cmath",
    "collections": "collections",
    "functools": "functools",
    "itertools": "itertools",
    "math": "math",
    "matplotlib.pyplot": "matplotlib.pyplot",
    "numba.cuda": "warplab.cuda",
    "cupy": "warplab.cp",
    "numpy": "numpy",
    "numpy.testing": "numpy.testing",
    "operator": "operator",
    "statistics": "statistics",
    "warplab": "warplab",
    "warplab.hardware.cards": "warplab.hardware.cards",
    "warplab.checks": "warplab.checks",
    "warplab.dropin.cupy": "warplab.cp",
    "warplab.dropin.numba_cuda": "warplab.cuda",
}


class Unheard(io.TextIOBase):
    """The output of functions while a test calls them, which nobody reads. `any`: whether they printed something."""

    any = False

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.any = True
        return len(text)


class Answer:
    """Text that reaches the judge unchanged through IPython's display formatter."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "<answer>"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {MIME: self._text}


def answer(request: str) -> Answer:
    """Answer a request about the notebook that this process runs."""
    from IPython import get_ipython

    return Answer(respond(request, get_ipython().user_ns))


def respond(request: str, namespace: dict[str, Any]) -> str:
    """Answer a request about `namespace`, as JSON."""
    done = []
    for wish in json.loads(request)["do"]:
        try:
            done.append(_OPERATIONS[wish["op"]](namespace, wish))
        except Exception as error:
            done.append({"kind": "raised", **_raised(error)})
    return json.dumps({"done": done})


def warm_up() -> None:
    """Load what students' cells and these answers need, the compilers included, for the sake of forked processes."""
    import numpy as np

    from warplab.dropin import choice
    from warplab.launch.numba_arguments import types_of

    cp, cuda = choice.load("cp"), choice.load("cuda")

    @cuda.jit
    def add(x, n):
        i = cuda.grid(1)
        if i < n:
            x[i] += 1

    namespace = {
        "add": add,
        "set": cp.RawKernel('extern "C" __global__ void set(float* x) { x[0] = 1; }', "set"),
        "half": lambda x: x / 2,
    }
    kinds = [numba_types.encode(kind) for kind in types_of("add", ["x", "n"], (np.zeros(1, np.float32), 1))]
    wishes = [
        {"op": "describe", "name": "add", "types": [kinds]},
        {"op": "describe", "name": "set"},
        {"op": "call", "name": "half", "calls": [[artefacts.encode([1.0]), artefacts.encode({})]]},
    ]
    respond(json.dumps({"do": wishes}), namespace)


# -- what a name stands for ----------------------------------------------------------------------------------


def _describe(namespace: dict[str, Any], wish: dict) -> dict:
    name = wish["name"]
    if name not in namespace:
        return {"kind": "missing"}
    value = namespace[name]
    if isinstance(value, types.ModuleType):
        module = PUBLIC_MODULES.get(value.__name__)
        return {"kind": "opaque", "type": "module"} if module is None else {"kind": "module", "name": module}
    source = _kernel_source(value)
    if source is not None:
        return _kernel(source, wish.get("types", []))
    if isinstance(value, type):
        return {"kind": "opaque", "type": f"class {value.__name__}"}
    if callable(value):
        from warplab.launch.kernel_source import is_empty

        own_name = getattr(value, "__name__", None)
        plain = isinstance(value, types.FunctionType)
        return {"kind": "function", "name": own_name, "plain": plain, "blank": plain and is_empty(value)}
    try:
        return {"kind": "value", "value": artefacts.encode(without_tensors(value))}
    except ArtefactError as error:
        return {"kind": "opaque", "type": type(value).__name__, "why": str(error)}


def _kernel_source(value: Any):
    """Return what a kernel was made from; None for anything else, such as a function without `cuda.jit`."""
    from warplab.launch.kernel_source import source_of

    if isinstance(value, types.FunctionType | type):
        return None
    try:
        return source_of(value)
    except TypeError:
        return None


def _kernel(source, wanted: list) -> dict:
    from warplab.launch.kernel_source import CudaSource

    described: dict[str, Any] = {"kind": "kernel", "language": source.language, "name": source.name}
    if isinstance(source, CudaSource):
        signature = source.signature
        return described | {
            "code": source.code,
            "file": source.file,
            "options": list(source.options),
            "signature": None if signature is None else _signature(signature),
            "compiled": _attempt(_compiled_cuda, source),
        }
    described |= {
        "parameters": source.parameters,
        "blank": source.blank,
        "signatures": None
        if source.signatures is None
        else [[numba_types.encode(kind) for kind in signature] for signature in source.signatures],
    }
    if not source.blank:
        fitting = [kinds for kinds in wanted if len(kinds) == len(source.parameters)]
        described["compiled"] = [[kinds, _attempt(_compiled_numba, source, kinds)] for kinds in fitting]
    return described


def _signature(signature) -> dict:
    parameters = [
        [p.declaration, p.name, p.pointer, None if p.dtype is None else p.dtype.str, p.count]
        for p in signature.parameters
    ]
    return {"name": signature.name, "parameters": parameters}


def _compile(namespace: dict[str, Any], wish: dict) -> dict:
    return _compiled_numba(_kernel_source(namespace[wish["name"]]), wish["types"])


def _attempt(compiled, *arguments) -> dict:
    try:
        return compiled(*arguments)
    except Exception as error:
        return {"kind": "raised", **_raised(error)}


def _compiled_cuda(source) -> dict:
    return _program(source.ptx, source.load())


def _compiled_numba(source, kinds: list) -> dict:
    signature = tuple(numba_types.decode(kind) for kind in kinds)
    compiled = source.compile(signature)
    return _program(compiled.ptx, compiled.entry)


def _program(ptx: str, entry) -> dict:
    return {"kind": "ptx", "ptx": ptx, "entry": entry.name, "sources": entry.program.sources}


# -- results of functions ------------------------------------------------------------------------------------


def _call(namespace: dict[str, Any], wish: dict) -> dict:
    function = namespace[wish["name"]]
    results, unheard, changed = [], Unheard(), False
    for given in wish["calls"]:
        arguments, keywords = artefacts.decode(given[0]), artefacts.decode(given[1])
        arrays = [(array, array.tobytes()) for array in _arrays([arguments, keywords])]
        try:
            with contextlib.redirect_stdout(unheard), contextlib.redirect_stderr(unheard):
                result = function(*arguments, **keywords)
        except (Exception, SystemExit) as error:
            results.append({"kind": "raised", **_raised(error)})
            continue
        changed = any(array.tobytes() != before for array, before in arrays)
        try:
            results.append({"kind": "value", "value": artefacts.encode(without_tensors(result))})
        except ArtefactError as error:
            results.append({"kind": "opaque", "type": type(result).__name__, "why": str(error)})
    return {"kind": "results", "results": results, "printed": unheard.any, "changed": changed}


def _arrays(value: Any) -> Iterator[Any]:
    """Yield the arrays in lists, tuples and dicts."""
    if hasattr(value, "tobytes"):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        yield from _arrays(part)


def _raised(error: BaseException) -> dict:
    """Return an exception's message and the names of its classes, the most derived first."""
    try:
        message = str(error)
    except Exception:
        message = ""
    return {"classes": [cls.__name__ for cls in type(error).__mro__], "message": message[:MAX_MESSAGE]}


def _count(namespace: dict[str, Any], wish: dict) -> dict:
    from IPython import get_ipython

    get_ipython().execution_count = wish["next"]
    return {"kind": "counted"}


def _define(namespace: dict[str, Any], wish: dict) -> dict:
    source, file = wish["source"], "<locked cells>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # which tf.function reads
    exec(compile(source, file, "exec"), namespace)
    return {"kind": "defined"}


_OPERATIONS = {"describe": _describe, "compile": _compile, "call": _call, "count": _count, "define": _define}

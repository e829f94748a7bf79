"""What runs in the child that compiles an answer: from the answer's file to PTX, which is all that the judge takes.

An answer in Python is executed here, so nothing that it does to its own process reaches the judge. The request comes on
standard input, the result goes to the file that the command line names; both are JSON. A process around it ends what it
has started, so that nothing of the answer still runs when the judge draws its arrays.
"""

import json
import os
import resource
import runpy
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from warplab.compile.headers import AS_NVCC
from warplab.judging import descendants

SECONDS = 180.0  # of the clock
LATE, LEFT = 3, 4  # exit codes
CPU_SECONDS, FILE_BYTES = 300, 64 << 20
# Of an answer in CUDA C++: what nvcc takes and NVRTC alone does not.
OPTIONS = ("-default-device", f"-I{AS_NVCC}", "-include=nvcc.h")


def main(arguments: list[str]) -> NoReturn:
    descendants.adopt()
    descendants.end_with(os.getppid())
    descendants.trace_nobody()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    around, until = os.getpid(), time.monotonic() + SECONDS
    with descendants.hidden():
        child = os.fork()
        if not child:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            descendants.end_with(around)
            _compile(Path(arguments[0]))
        ended = 0
        while ended != child and (left := until - time.monotonic()) > 0:
            signal.sigtimedwait({signal.SIGCHLD}, left)
            while ended != child and (one := os.waitpid(-1, os.WNOHANG)[0]):
                ended = one
        all_ended = descendants.end_children()
    os._exit(LATE if ended != child else 0 if all_ended else LEFT)


def _compile(result: Path) -> NoReturn:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    request = json.load(sys.stdin)
    found: dict[str, Any]
    try:
        found = {"kernels": compiled(request)}
    except Exception as error:
        from warplab.compile.short_traceback import first_line
        from warplab.launch.errors import NoKernel

        missing = isinstance(error, NoKernel)
        found = {"error": str(error) if missing else f"the answer does not compile: {first_line(error)}"}
        if (fault := fault_of_options(request)) is not None:
            found = {"task": f"options={request['options']!r} do not compile an empty file: {first_line(fault)}"}
    except SystemExit:
        found = {"error": "the answer ends its process instead of defining kernels"}
    result.write_text(json.dumps(found), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # nothing that the answer has left to run at the end delays the judge


def compiled(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the kernels that the request names, in its order."""
    path = request["answer"]
    if path.endswith((".cu", ".cuh")):
        code = Path(path).read_text(encoding="utf-8-sig", errors="replace")  # of comments in Latin-1, as nvcc
        name = os.path.basename(path)
        return [_cuda(code, one["name"], [*OPTIONS, *request["options"]], name) for one in request["kernels"]]
    from warplab.dropin import imports

    imports.install(children=False)
    names = runpy.run_path(path, run_name="answer")
    return [_python(names, one) for one in request["kernels"]]


def fault_of_options(request: dict[str, Any]) -> Exception | None:
    """Return what the task's options give with no code at all, so that they are not told to be the answer's fault."""
    from warplab.launch.kernel_source import CudaSource

    if not request["options"] or not request["answer"].endswith((".cu", ".cuh")):
        return None
    try:
        _ = CudaSource("", "", (*OPTIONS, *request["options"])).ptx  # compiles
    except Exception as error:
        return error
    return None


def _cuda(code: str, name: str, options: list[str], file: str, by_cupy: bool = False) -> dict[str, Any]:
    from warplab.launch.kernel_source import CudaSource

    source = CudaSource(code, name, tuple(options), file, by_cupy=by_cupy)
    entry = source.load()
    return {
        "language": "CUDA C++",
        "ptx": source.ptx,
        "entry": entry.name,
        "code": code,
        "sources": dict(entry.program.sources),
        "max_registers": source.max_registers,
    }


def _python(names: dict[str, Any], kernel: dict[str, Any]) -> dict[str, Any]:
    from warplab.launch.errors import NoKernel
    from warplab.launch.kernel_source import CudaSource, NumbaSource, source_of

    found = names.get(kernel["name"])
    if found is None:
        raise NoKernel(f"the answer has no kernel {kernel['name']}")
    source = source_of(found)
    if isinstance(source, CudaSource):
        return _cuda(source.code, source.entry, list(source.options), "kernel.cu", source.by_cupy)
    assert isinstance(source, NumbaSource)
    signature = _signature(found, source, kernel)
    first = source.compile(signature)
    return {
        "language": "Numba",
        "ptx": first.ptx,
        "entry": first.entry.name,
        "types": [str(kind) for kind in signature],
        "parameters": source.parameters,
        "sources": dict(first.entry.program.sources),
        "names": dict(first.entry.source_names),
        "max_registers": source.max_registers,
    }


def _signature(kernel: Any, source: Any, asked: dict[str, Any]) -> tuple:
    """Return the Numba types that the kernel is compiled for when it gets arguments of the kinds in the request."""
    import numpy as np

    from warplab.launch.numba_arguments import match_signature, types_of

    args = []
    for kind in asked["args"]:
        dtype = np.dtype(kind["dtype"])
        args.append(np.zeros((1,) * kind["ndim"], dtype) if "ndim" in kind else dtype.type(0))
    if len(args) != len(source.parameters):
        raise TypeError(f"{source.name}({', '.join(source.parameters)}) gets {len(args)} arguments")
    types = types_of(source.name, source.parameters, tuple(args))
    explicit = list(getattr(kernel, "overloads", ()))
    return match_signature(source.name, source.parameters, types, explicit) if explicit else types

"""What can go wrong when a kernel is compiled, and how NVRTC's log of it reads in a notebook."""

import collections
import functools
import importlib.util
import os
import re

from warplab.compile.headers import include_folders
from warplab.compile.short_traceback import short_traceback

MOST_ERRORS = 3  # shown of one compilation; the first one often causes the others

_HINTS = (
    (
        re.compile(r'cannot open source file "(c?std\w*(\.h)?|c?math(\.h)?|iostream|vector|string|cassert|assert\.h)"'),
        "NVRTC compiles device code only and has no host headers: printf, assert and the math functions need "
        "no #include; fixed-width integers are in <cuda/std/cstdint>.",
    ),
    (
        re.compile(r'cannot open source file "curand\w*\.h"'),
        'CUDA\'s random numbers come with pip install "warplab[curand]".',
    ),
    (
        re.compile(r'identifier "__(shfl|any|all|ballot)\w*" is undefined'),
        "Since Volta these have a mask of lanes as their first argument: __shfl_down_sync(0xffffffff, x, 16).",
    ),
    (
        re.compile(r"function without execution space annotations"),
        "Declare a function that a kernel calls with __device__ in front, a kernel with __global__.",
    ),
    (
        re.compile('device-side kernel launch|"cudaDeviceSynchronize" is undefined'),
        "A kernel that launches kernels (dynamic parallelism) is not supported: launch from the host.",
    ),
    (
        re.compile(r'no instance of overloaded function "mma_sync"'),
        "mma_sync takes the result, A's fragment, B's fragment and the sums so far: mma_sync(sum, fa, fb, sum).",
    ),
    (re.compile(r'expected a ";"\n( *)\S.*\n\1\^'), 'The ";" is missing before this line, where the last one ends.'),
    (re.compile('"cuda" is undefined'), "This cell is C++: cuda.grid(1) is blockIdx.x * blockDim.x + threadIdx.x."),
    (re.compile(r'expected a "\("\n.*\bfor \w+ in\b'), "This cell is C++: for (int i = 0; i < n; i++) { ... }."),
    (re.compile(r'expected a "\("\n.*\bif [^(].*:'), "This cell is C++: if (i < n) { ... }."),
    (
        re.compile(r'expression must have class type but it has type "(const )?\w+ \*'),
        "A pointer does not know how many elements lie there: the kernel gets their number as an argument.",
    ),
    (re.compile(r'operand of "\*" must be a pointer.*\n.*\*\*'), "C++ has no **: powf(a, b), or a * a."),
    (
        re.compile(r"must be a modifiable lvalue\n.*\w+\[.*\] *[-+*/]?="),
        "What a const pointer points to may only be read.",
    ),
    (
        re.compile(r'no operator ".=?" matches these operands\n.*\b(float|int|double)[234]\b'),
        "CUDA C++ has no arithmetic for vectors: compute with the members x, y, z, w, then make_float4 or the like.",
    ),
    (
        re.compile(r'no instance of overloaded function "(load|store)_matrix_sync"'),
        "A fragment and the memory that it is loaded from or stored to must have the same type (half and half*, float "
        "and float*), and the pointer must point to the first element: for half tile[16][16] that is &tile[0][0]. "
        "A fragment of sums needs mem_row_major or mem_col_major as the last argument; the others take none.",
    ),
)


class CompileError(RuntimeError):
    """CUDA C++ that does not compile. `log`: NVRTC's whole log. `str(error)` shows file, line, source and caret."""

    _render_traceback_ = short_traceback

    def __init__(self, log: str) -> None:
        self.log = log
        super().__init__(readable(log) + "".join(f"\n{hint}" for pattern, hint in _HINTS if pattern.search(log)))


class CompilerNotFound(RuntimeError):
    """A compiler package is missing or does not load. `extra`: that of warplab which brings it, "" for the base."""

    def __init__(self, what: str, error: Exception, extra: str = "") -> None:
        how = [f'pip install "warplab[{extra}]"'] if extra else []
        if importlib.util.find_spec("warpcourse") is not None:
            how.append("in the course run `python -m warplab doctor` to see what is missing")
        super().__init__(f"{what} does not load ({error}); {', or '.join(how) or 'pip install warplab brings it'}")


def shorten_traceback(error: Exception) -> None:
    """Let IPython show `error`, of a class that is not ours, by its message and the learner's own lines."""
    setattr(error, "_render_traceback_", functools.partial(short_traceback, error))  # noqa: B010 - what IPython asks for


_HEAD = re.compile(r"^(.+)\((\d+)\): (?=(?:catastrophic )?error|warning|remark|note)", re.MULTILINE)
_NOISE = re.compile(
    r"^\d+ (catastrophic )?errors? detected in the compilation of .*$|^Compilation terminated\.$"
    r"|^Remark: The warnings can be suppressed.*$",
    re.MULTILINE,
)
_CANDIDATE = re.compile(r"^(/.+), line \d+: note #33(?:22|26)-D: .*\n?(?:[ \t]+.*\n?)*", re.MULTILINE)


def readable(log: str) -> str:
    """Return NVRTC's log with "file, line N:" in front; of a failed compilation only the first errors."""
    text = _NOISE.sub("", _HEAD.sub(r"\1, line \2: ", log))
    reports = [report.strip("\n") for report in re.split(r"\n\s*\n", text) if report.strip()]
    errors = [report for report in reports if re.match(r".*: (catastrophic )?error: ", report)]
    if not errors:
        return "\n".join(reports)
    more = len(errors) - MOST_ERRORS
    shown = [_without_candidates(report) for report in errors[:MOST_ERRORS]]
    return "\n".join(shown) + (f"\n{more} more error{'s' * (more > 1)}" if more > 0 else "")


def _without_candidates(report: str) -> str:
    """Replace the header functions that do not match a call by their number; loading a fragment alone lists 80."""
    left_out: collections.Counter[str] = collections.Counter()

    def shorten(match: re.Match) -> str:
        if not match[1].startswith(include_folders()):
            return match[0]
        left_out[os.path.basename(match[1])] += 1
        return ""

    kept = _CANDIDATE.sub(shorten, report).rstrip("\n")
    return "\n".join(
        [kept, *(f"None of the {number} declarations in {file} matches." for file, number in left_out.items())]
    )

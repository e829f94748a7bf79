"""Kernels of approximate functions, whose results may differ by their documented errors.

The errors are those of the CUDA C++ Programming Guide, "Mathematical Functions": units in the last place, or absolute
in the stated range. Two results within the error lie at most twice as far apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.warplab.differential.choices import Choices


@dataclass(frozen=True)
class Function:
    """A call on {x} and {y} between `low` and `high`; its documented error."""

    call: str
    low: float
    high: float
    ulps: float = 0
    absolute: float = 0
    kind: str = "f32"


FUNCTIONS = (
    Function("__fdividef({x}, {y})", 0.5, 1e6, 2),
    Function("__expf({x})", -8, 8, 2 + 9),
    Function("__exp10f({x})", -4, 4, 2 + 11),
    Function("__logf({x})", 2, 1e6, 3),
    Function("__logf({x})", 0.5, 2, absolute=2**-21.41),
    Function("__log2f({x})", 2, 1e6, 2),
    Function("__log2f({x})", 0.5, 2, absolute=2**-22),
    Function("__log10f({x})", 2, 1e6, 3),
    Function("__sinf({x})", -3.14, 3.14, absolute=2**-21.41),
    Function("__cosf({x})", -3.14, 3.14, absolute=2**-21.19),
    Function("rsqrtf({x})", 1e-6, 1e6, 2),
    Function("sinf({x})", -1e5, 1e5, 2),
    Function("cosf({x})", -100, 100, 2),
    Function("tanf({x})", -100, 100, 4),
    Function("asinf({x})", -1, 1, 2),
    Function("acosf({x})", -1, 1, 2),
    Function("atanf({x})", -1e3, 1e3, 2),
    Function("atan2f({x}, {y})", -10, 10, 3),
    Function("sinhf({x})", -10, 10, 3),
    Function("coshf({x})", -10, 10, 2),
    Function("tanhf({x})", -10, 10, 2),
    Function("expf({x})", -80, 80, 2),
    Function("exp2f({x})", -100, 100, 2),
    Function("exp10f({x})", -30, 30, 2),
    Function("expm1f({x})", -10, 10, 1),
    Function("logf({x})", 1e-6, 1e6, 1),
    Function("log2f({x})", 1e-6, 1e6, 1),
    Function("log10f({x})", 1e-6, 1e6, 2),
    Function("log1pf({x})", -0.9, 1e3, 1),
    Function("powf({x}, {y})", 0.1, 8, 4),
    Function("erff({x})", -4, 4, 2),
    Function("erfcf({x})", -4, 4, 4),
    Function("cbrtf({x})", -1e6, 1e6, 1),
    Function("hypotf({x}, {y})", -1e6, 1e6, 3),
    Function("normcdff({x})", -4, 4, 5),
    Function("sin({x})", -1e5, 1e5, 2, kind="f64"),
    Function("cos({x})", -100, 100, 2, kind="f64"),
    Function("exp({x})", -300, 300, 1, kind="f64"),
    Function("log({x})", 1e-6, 1e6, 1, kind="f64"),
    Function("pow({x}, {y})", 0.1, 8, 2, kind="f64"),
    Function("tanh({x})", -10, 10, 1, kind="f64"),
    Function("rsqrt({x})", 1e-6, 1e6, 1, kind="f64"),
    Function("cbrt({x})", -1e6, 1e6, 1, kind="f64"),
    Function("erf({x})", -4, 4, 2, kind="f64"),
    Function("atan2({x}, {y})", -10, 10, 2, kind="f64"),
    Function("hypot({x}, {y})", -1e6, 1e6, 2, kind="f64"),
)


def body(choices: Choices) -> tuple[list[str], list[tuple[str, str]], list[Function]]:
    """Lines of a kernel that computes four of the functions; its results (type, name); the function of each."""
    lines, results, functions = [], [], []
    for number in range(4):
        function = choices.one(FUNCTIONS)
        c_type, to = ("float", "f") if function.kind == "f32" else ("double", "")
        span = function.high - function.low
        lines.append(f"{c_type} r{number};")
        lines.append("{")
        for name, word in (("x", 2 * number), ("y", 2 * number + 1)):
            share = f"({c_type})((in_u[(i * 8u + {word}u) % (4u * n)] + i) * 2654435769u >> 8)"
            share += f" * ({c_type})5.9604644775390625e-08"
            low, width = f"({c_type})({function.low!r})", f"({c_type})({span!r})"
            lines.append(f"{c_type} {name} = fma{to}({share}, {width}, {low});")
        lines.append(f"r{number} = {function.call.format(x='x', y='y')}; (void)y;")
        lines.append("}")
        results.append((function.kind, f"r{number}"))
        functions.append(function)
    return lines, results, functions

"""The device's side of a program: what NVRTC can take of CUDA C++ that has been preprocessed.

CUDA's headers stand as #include again, the C++ library's go. What a file declares at its top level is kept if it is
for the device, and on trial if it is a type or a constant: NVRTC may not be able to read it, and then no kernel needs
it. A type that it cannot read goes without the functions in it that are for the host alone, if that will do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from warplab.compile.device_code import device_parts
from warplab.compile.errors import CompileError
from warplab.compile.nvrtc import CudaProgram, compile_cuda_program
from warplab.program.source_text import (
    closing,
    end_of_variable,
    first_mark,
    function_body,
    masked,
    regions,
    without_compound_literals,
    without_statement_expressions,
)

# CUDA's headers that kernels need; the others come with NVRTC or are for the host.
_HEADERS = re.compile(
    r"(?:cooperative_groups|cuda\.h|cuda_fp|cuda_bf|mma\.h|curand_kernel|cuComplex|cuda_pipeline|cuda_awbarrier|cub/(?!device)|cuda/"
    r"|thrust/(?:complex|tuple|pair|functional|random)\.h)"
)
_MARKER = re.compile(r'^# (\d+) "([^"]*)".*$', re.M)
_FOR_DEVICE = re.compile(r"\b__(?:global|device|constant|shared)__\b")
_TYPE = re.compile(
    r"\s*(?:template\s*<[^{;]*>\s*)?(?:typedef\s+)?(?:struct|class|union)\b(?:[^;{(]|(?:alignas|__align__)\s*\([^()]*\))*\{"
)
_ACCESS = re.compile(r"(?:\s*(?:public|private|protected)\s*:)*\s*")
_TEMPLATE = re.compile(r"template\s*<")
_CONSTANT = re.compile(r"\s*(?:template\s*<[^{;]*>\s*)?(?:(?:static|inline)\s+)*(?:constexpr|concept)\b")
_NESTED = re.compile(r"\b(?:struct|class|union)\b")
_NEEDED = re.compile(r"\b(?:__device__|__global__|constexpr|virtual|default|delete)\b")
_ERROR = re.compile(r"^(\S.*?)\((\d+)\): (?:catastrophic )?error", re.M)
_PRELUDE = """
#include <pow.h>
namespace std {}
typedef unsigned int uint; typedef unsigned short ushort; typedef unsigned char uchar; typedef unsigned long ulong;
typedef unsigned char u_int8_t; typedef unsigned int u_int32_t; typedef long ssize_t;
extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, size_t);
template <class T> struct warplab_value { typedef T type; };
template <class T> struct warplab_value<T&> { typedef T type; };
#define __null 0
#define __managed__ __device__
#define __builtin_inff() __builtin_bit_cast(float, 0x7f800000)
#define __builtin_inf() __builtin_bit_cast(double, 0x7ff0000000000000)
#define __builtin_huge_valf __builtin_inff
#define __builtin_huge_val __builtin_inf
#define __builtin_nanf(payload) __builtin_bit_cast(float, 0x7fc00000)
#define __typeof__(...) typename warplab_value<decltype(__VA_ARGS__)>::type
#define __assert_fail(what, file, line, function) __assertfail(what, file, line, function, 1)
"""
# So that types which have one can be read. No kernel can use it, and what is not defined is not asked for.
_STRING = """
class warplab_string { alignas(8) char text[32]; public: warplab_string(); warplab_string(const warplab_string&);
  template <class... T> warplab_string(T...); template <class T> warplab_string& operator=(T); ~warplab_string();
  template <class T> warplab_string operator+(T) const; template <class T> bool operator==(T) const;
  friend warplab_string operator+(const char*, const warplab_string&);
  bool empty() const; const char* c_str() const; size_t size() const; size_t length() const; };
namespace std { using ::warplab_string; }
#define string warplab_string
"""
_INTEGERS = """
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long uint64_t; typedef unsigned long uintptr_t; typedef long intptr_t;
"""
# As on Linux, where nvcc takes the host's: NVRTC's own are of long long, another type to templates and overloads.
_LONG = "".join(
    f"typedef {kind} warplab_{name}; namespace cuda {{ namespace std {{ using ::warplab_{name}; }} }}\n"
    f"#define {name} warplab_{name}\n"
    for name, kind in {"int64_t": "long", "uint64_t": "unsigned long"}.items()
)
# Only where it is used: it comes with some hundred variables.
_STANDARD = (
    "".join(
        f"#include <cuda/std/{name}>\n"
        for name in ("array", "cmath", "complex", "cstdint", "functional", "limits", "tuple", "type_traits", "utility")
    )
    + "namespace std { using namespace cuda::std; }\n"
)
# What `using namespace std` brings in: all but the functions of <cmath>. CUDA has them at the top level; those of a C++
# library are the same ones, while NVRTC would have two of each and could not choose.
_NAMES = (
    "pair make_pair swap move forward exchange declval as_const integer_sequence index_sequence make_index_sequence "
    "array tuple make_tuple tie get apply ignore tuple_size tuple_element tuple_cat numeric_limits min max complex "
    "real imag conj norm polar arg proj plus minus multiplies divides modulus negate less less_equal greater "
    "greater_equal equal_to not_equal_to logical_and logical_or logical_not bit_and bit_or bit_xor bit_not invoke "
    "reference_wrapper ref cref hash index_sequence_for integral_constant bool_constant "
    "true_type false_type void_t alignment_of int8_t int16_t "
    "int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t"
)
_KINDS = (  # is_same, is_same_v
    "same integral floating_point arithmetic signed unsigned pointer void const class base_of convertible enum array "
    "reference constructible empty trivially_copyable"
)
_CHANGES = (  # decay, decay_t
    "enable_if conditional decay common_type make_signed make_unsigned remove_reference remove_const remove_cv "
    "remove_pointer remove_extent add_const add_pointer underlying_type invoke_result"
)
_USED = [*_NAMES.split(), *(f"is_{kind}{tail}" for kind in _KINDS.split() for tail in ("", "_v"))]
_USED += [f"{change}{tail}" for change in _CHANGES.split() for tail in ("", "_t")]
_UNAMBIGUOUS = f"namespace warplab_std {{ {' '.join(f'using std::{name};' for name in _USED)} }}\n"
_FOR_THRUST = f"{_STANDARD}#include <float.h>\n#undef __host__\n#define __host__\n"  # NVRTC refuses __host__ functions
_DESIGNATED = re.compile(r"[{,]\s*\.\w+\s*=(?!=)")  # GNU's C++ has them before 2020
_USING = re.compile(r"(?<=\busing namespace )std(?=\s*;)")
_OF_STANDARD = re.compile(r"\bstd\s*::|\b(?:numeric_limits|is_same|enable_if|conditional|pair|complex|tuple|swap)\b")


@dataclass
class DeviceSource:
    """`parts`: text of the file's declarations, in order. `on_trial`: which of them may go. `lines`: the part of each
    file's line."""

    parts: list[str] = field(default_factory=list)
    on_trial: set[int] = field(default_factory=set)
    lines: dict[tuple[str, int], set[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, preprocessed: str, cuda_folders: Sequence[str]) -> DeviceSource:
        """Return what is for the device in a file."""
        made, own, includes, before = cls(), list[str](), dict[str, None](), ""
        for region in regions(preprocessed, cuda_folders):
            if region.kind == "own":
                own.append(region.text)
            elif region.kind == "cuda" and region.entered and before == "own":
                folder = max((f for f in cuda_folders if region.path.startswith(f)), key=len)
                name = PurePath(region.path).relative_to(folder).as_posix()
                names = [name] if _HEADERS.match(name) else []
                if name == "cub/cub.cuh":  # what kernels can use of it; the rest is not for NVRTC
                    rooms = [path for room in ("block", "warp") for path in Path(folder, "cub", room).glob("*.cuh")]
                    names = sorted(path.relative_to(folder).as_posix() for path in rooms)
                includes |= dict.fromkeys(f"#include <{one}>\n" for one in names)
            before = region.kind
        thrust = any("<thrust/" in one for one in includes)
        made.parts = [_FOR_THRUST * thrust + "".join(includes), _PRELUDE]
        text = without_compound_literals(without_statement_expressions("".join(own)))
        pieces = list(device_parts(text))
        if any(kept and _OF_STANDARD.search(text) for text, kept in pieces):
            made.parts[1] += _STANDARD + _LONG + _UNAMBIGUOUS
            pieces = [(_USING.sub("warplab_std", text), kept) for text, kept in pieces]
        else:  # CUDA's own headers may have another int64_t
            made.parts[1] += f"#include <cuda/std/cstdint>\n{_LONG}" if includes else _INTEGERS
        if any(kept and re.search(r"\bstring\b", text) for text, kept in pieces):
            made.parts[1] += _STRING
        file, line, row = "", 1, ""
        for whole, kept in pieces:
            text = whole
            number = len(made.parts)
            if kept or _CONSTANT.match(text):
                marked = _MARKER.match(row)
                start = int(marked[1]) - 1 if marked else line
                start += len(text) - len(text.lstrip("\n"))
                path, text = (marked[2] if marked else file), text.lstrip("\n")
                text += ";" * bool(_TYPE.match(text) and text.endswith("}"))  # a variable of the host's follows
                made.parts.append(_line(start, path) + "\n" + _MARKER.sub(lambda m: _line(m[1], m[2]), text) + "\n")
                if not _FOR_DEVICE.search(text) and not text.strip().startswith(("#", "namespace", "}", "extern")):
                    made.on_trial.add(number)
            for position, piece in enumerate(whole.split("\n")):
                if position:  # a line has ended
                    match = _MARKER.match(row)
                    file, line = (match[2], int(match[1])) if match else (file, line + 1)
                    row = ""
                row += piece
                if number < len(made.parts) and piece.strip():  # the text has a part
                    made.lines.setdefault((file, line), set()).add(number)
        return made

    def compile(self, name: str, options: tuple[str, ...], expressions: tuple[str, ...]) -> tuple[str, CudaProgram]:
        """Return the text that NVRTC has accepted, and the program. Raises CompileError, that of the whole text."""
        first: CompileError | None = None
        if any(map(_DESIGNATED.search, self.parts)) and not any("std=" in option for option in options):
            options = (*options, "-std=c++20")
        while True:
            text = "".join(self.parts)
            try:
                return text, compile_cuda_program(text, name, options=options, name_expressions=expressions)
            except CompileError as error:
                first, before = first or error, [*self.parts]
                places = [(file, int(line)) for file, line in _ERROR.findall(error.log)]
                for n in {n for place in places for n in self.lines.get(place, ())}:
                    less = _without_host_functions(self.parts[n])
                    self.parts[n] = "" if less == before[n] and n in self.on_trial else less
                if before == self.parts:
                    raise first from None


def _without_host_functions(part: str) -> str:
    """Return a type's text without the functions in it that are for the host alone; any other text as it is."""
    mask, kept, copied = masked(part), list[str](), 0
    head = _TYPE.match(mask)
    at = head.end() if head else len(mask)
    while at < len(mask):
        start = _ACCESS.match(mask, at).end()  # type: ignore[union-attr]
        template = _TEMPLATE.match(mask, start)
        at = closing(mask.replace("<", "(").replace(">", ")"), template.end() - 1) + 1 if template else start
        first = first_mark(mask, at)
        if mask[first] == "{" and _NESTED.search(mask, at, first):
            at = first + 1
        elif mask[first] != "(" or re.match(r"\(\s*\*", mask[first:]):
            at = end_of_variable(mask, first) + 1
        else:
            behind = closing(mask, first) + 1
            body, at = function_body(mask, behind)
            at = at if body else end_of_variable(mask, behind) + 1
            if not _NEEDED.search(mask[start:first] + mask[behind : body or at]):
                kept += part[copied:start], re.sub(r"^(?!#line).+", "", part[start:at], flags=re.M)
                copied = at
    return "".join(kept) + part[copied:]


def _line(number: int | str, file: str) -> str:
    return f'#line {max(1, int(number))} "{file}"'

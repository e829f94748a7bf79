"""Signatures of CUDA C++ kernels, read from the source, to check arguments by name and type before a launch.

The compiler has accepted the source already, so this module only finds `__global__` functions and splits their
parameters. Arguments of a type that it does not know (a template parameter, a struct, a macro) are not checked.
"""

import re
from dataclasses import dataclass

import numpy as np

# Element types: C++ name -> NumPy dtype. Vector types (float4) have the dtype of their parts.
_SCALARS = {
    "bool": "?",
    "char": "i1",
    "signed char": "i1",
    "unsigned char": "u1",
    "short": "i2",
    "unsigned short": "u2",
    "int": "i4",
    "signed": "i4",
    "signed int": "i4",
    "unsigned": "u4",
    "unsigned int": "u4",
    "long": "i8",
    "unsigned long": "u8",
    "long long": "i8",
    "unsigned long long": "u8",
    "long long int": "i8",
    "unsigned long long int": "u8",
    "size_t": "u8",
    "ssize_t": "i8",
    "ptrdiff_t": "i8",
    "half": "f2",
    "__half": "f2",
    "float": "f4",
    "double": "f8",
    **{f"{'u' * (kind == 'u')}int{8 * size}_t": f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)},
}
_VECTORS = {
    "char": "i1",
    "uchar": "u1",
    "short": "i2",
    "ushort": "u2",
    "int": "i4",
    "uint": "u4",
    "longlong": "i8",
    "ulonglong": "u8",
    "float": "f4",
    "double": "f8",
}
_VECTOR = re.compile(r"^([a-z]+)([1-4])$")
_QUALIFIERS = re.compile(r"\b(const|volatile|struct|__restrict__|__restrict|restrict|__grid_constant__)\b")
_KERNEL = re.compile(r"\b__global__\b")
_LAUNCH_BOUNDS = re.compile(r"\b(__launch_bounds__|__cluster_dims__|__maxnreg__|alignas|__align__)\s*\(")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel.

    `declaration`: as written, "const float* a". `dtype`: element type of a pointer or type of a scalar, None if
    unknown. `count`: elements that a scalar parameter holds (4 for float4).
    """

    declaration: str
    name: str
    pointer: bool
    dtype: np.dtype | None
    count: int = 1

    def accepts(self, dtype: np.dtype) -> bool:
        """Return whether this pointer may point to an array of `dtype`: the same kind and size, whatever the sign."""
        want = self.dtype
        if want is None or want == dtype or want.itemsize == dtype.itemsize == 1:
            return True
        if want.itemsize == dtype.itemsize and want.kind in "iu" and dtype.kind in "iu":
            return True
        if dtype.kind == "c":  # float2 over complex64
            return want.kind == "f" and dtype.itemsize == 2 * want.itemsize
        return dtype.kind == "V"  # records and ml_dtypes' bfloat16, of which NumPy knows only the size


@dataclass(frozen=True)
class Signature:
    """A `__global__` function. `extern_c`: whether `name` is its name in PTX; `template`: whether it is a template."""

    name: str
    parameters: tuple[Parameter, ...]
    extern_c: bool
    template: bool

    def __str__(self) -> str:
        return f"{self.name}({', '.join(p.declaration for p in self.parameters)})"


def kernels(source: str) -> dict[str, Signature]:
    """Map the names of the `__global__` functions of `source`, in its order, to the first overload of each."""
    text = _strip(source)
    found: dict[str, Signature] = {}
    for match in _KERNEL.finditer(text):
        head = text[match.end() : _end_of_head(text, match.end())]
        head = _without_calls(head)
        declaration = re.match(r"[^(]*?\b(\w+)\s*\(", head)
        if not declaration:
            continue
        name = declaration[1]
        arguments = head[declaration.end() : _closing(head, declaration.end() - 1)]
        before = text[: match.start()]
        signature = Signature(
            name, tuple(_parameters(arguments)), _in_extern_c(before), bool(_TEMPLATE_BEFORE.search(before))
        )
        found.setdefault(name, signature)
    return found


_TEMPLATE_BEFORE = re.compile(r"\btemplate\s*<[^{};]*>\s*(static\s+|inline\s+)*$")


def _in_extern_c(before: str) -> bool:
    if re.search(r'\bextern\s*"C"\s*(static\s+|inline\s+)*$', before):
        return True
    for block in re.finditer(r'\bextern\s*"C"\s*\{', before):
        inside = before[block.end() :]
        depth = 1
        for bracket in re.finditer(r"[{}]", inside):
            depth += 1 if bracket[0] == "{" else -1
            if depth == 0:
                break
        if depth > 0:
            return True
    return False


def _strip(source: str) -> str:
    """Remove comments and preprocessor lines from `source`, and empty its string literals, but for "C"."""

    def keep(match: re.Match) -> str:
        text = match[0]
        if text.startswith("/"):
            return " "
        return text if text == '"C"' else '""'

    text = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', keep, source, flags=re.DOTALL)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.MULTILINE)


def _end_of_head(text: str, start: int) -> int:
    ends = [i for i in (text.find("{", start), text.find(";", start)) if i >= 0]
    return min(ends, default=len(text))


def _without_calls(head: str) -> str:
    """Remove __launch_bounds__(...) and the like from `head`, as their brackets are not the parameters'."""
    while match := _LAUNCH_BOUNDS.search(head):
        head = head[: match.start()] + head[_closing(head, match.end() - 1) + 1 :]
    return head


def _closing(text: str, opening: int) -> int:
    depth = 0
    for i in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    return len(text)


def _parameters(text: str) -> list[Parameter]:
    parts, depth, start = [], 0, 0
    for i, character in enumerate(text):
        if character in "<([":
            depth += 1
        elif character in ">)]":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [_parameter(" ".join(part.split())) for part in parts if part.strip() not in ("", "void")]


def _parameter(declaration: str) -> Parameter:
    text = declaration.split("=")[0].strip()
    body = " ".join(_QUALIFIERS.sub(" ", text).split())
    match = re.match(r"^(.*?)(\w+)\s*((?:\[[^\]]*\]\s*)*)$", body)
    if not match or not match[1].strip():
        return Parameter(text, "", "*" in body, None)
    type_text, name, brackets = match[1].strip(), match[2], match[3]
    stars = type_text.count("*") + bool(brackets)
    base = type_text.replace("*", " ").replace("&", " ").strip()
    if stars > 1 or "<" in base:
        return Parameter(text, name, stars > 0, None)
    dtype, count = _element(base)
    return Parameter(text, name, stars == 1, dtype, count)


def _element(base: str) -> tuple[np.dtype | None, int]:
    base = base.removeprefix("std::")
    if base in _SCALARS:
        return np.dtype(_SCALARS[base]), 1
    vector = _VECTOR.match(base)
    if vector and vector[1] in _VECTORS:
        return np.dtype(_VECTORS[vector[1]]), int(vector[2])
    return None, 1

"""Cut the code for the device out of a CUDA C++ program: what NVRTC needs for its kernels, without the host part.

At the top level of a file these stay: functions for the device, types, constants, templates of these, and the
preprocessor's lines except `#include`, of which headers that NVRTC knows stay. Functions and variables of the host go.
"""

import re
from collections.abc import Iterator

_ON_DEVICE = re.compile(r"\b(__global__|__device__|__constant__|__managed__|__shared__)\b")
_KEPT = re.compile(
    r"^(?:static\s+|inline\s+)*(?:(?:typedef|using|struct|class|union|enum|namespace|constexpr|const)\b"
    r"|(?:(?:unsigned|long)\s+)*(?:bool|char|double|float|int|long|short|unsigned)\s+const\b(?!\s*\*))"
)
_TEMPLATE = re.compile(r"^template\s*<")
_CONCEPT = re.compile(r"\bconcept\s+\w+\s*=")
_WITHIN = r"(?:[^()]|\([^()]*\))*"  # of parentheses, as in __align__(n * sizeof(T))
_ALIGNMENT = re.compile(
    rf"\b(?:alignas|__align__|__builtin_align__)\s*\({_WITHIN}\)|__attribute__\s*\(\([^()]*(?:\({_WITHIN}\)\s*)?\)\)"
)
_NAMES = re.compile(rf"(?:[\s\w,*]|\[[^\]]*\]|{_ALIGNMENT.pattern})*;|\s*=")  # `} name, *other;` of a type
_HEADERS = ("cooperative_groups", "cuda_fp16", "cuda_bf16", "mma.h", "cuda/")
_USING = re.compile(r"^using\s+\w+::(\w+)\s*;", re.M)  # of a name in a namespace, which may be a host function's
_SCOPE = re.compile(r'^(?:extern\s+"C"|namespace(?:\s+[\w:]+)?)\s*\{')


def device_code(text: str) -> str:
    """Return the code of a `.cu` or `.cuh` file that is for the device. Each line keeps its number."""
    parts = device_parts(_without_comments(text))
    kept = "".join(part if is_kept else "\n" * part.count("\n") for part, is_kept in parts)
    return _USING.sub(lambda match: match[0] if len(re.findall(rf"\b{match[1]}\b", kept)) > 1 else "", kept)


def device_parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the declarations of a file without comments, namespaces opened up, and whether each is for the device."""
    for raw in _parts(text):
        part = raw.strip()
        if _SCOPE.match(part):
            start = raw.index("{") + 1
            yield raw[:start], True
            yield from device_parts(raw[start : raw.rindex("}")])
            yield raw[raw.rindex("}") :], True
        else:
            yield raw, _is_kept(part)


def _is_kept(part: str) -> bool:
    if part.startswith("#"):
        header = re.match(r'#\s*include\s*[<"]([^>"]+)', part)
        return header is None or header[1].startswith(_HEADERS)
    return _is_for_device(part)


def _is_for_device(part: str) -> bool:
    head = part.split("{", 1)[0]
    if _ON_DEVICE.search(head):
        return True
    if _TEMPLATE.match(part):
        head = part[_end_of_parameters(part) :].lstrip().split("{", 1)[0]
        return bool(_KEPT.match(head)) and (head.startswith("using") or "(" not in _ALIGNMENT.sub("", head))
    if re.match(r"^(?:static\s+)*const\b[^=]*\*", part):  # a pointer to the host's memory
        return False
    function = re.match(r"^[\w\s:&*<>,]+\w\s*\([^()]*\)\s*(\{|;)", _ALIGNMENT.sub("", part))
    return bool(_KEPT.match(part)) and not function


def _parts(text: str) -> Iterator[str]:
    """Yield the declarations, definitions and preprocessor lines of a file, with the space before each."""
    at = 0
    while match := re.compile(r"\s*(\S)").match(text, at):
        start = match.start(1)
        if text[start] == "#":
            end = re.compile(r"(?:[^\n\\]|\\.)*", re.S).match(text, start).end()  # type: ignore[union-attr]
        else:
            end = _end_of_declaration(text, start)
        yield text[at:end]
        at = end
    yield text[at:]


def _end_of_declaration(text: str, start: int) -> int:
    depth = 0
    for match in re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[(){}\[\];]').finditer(text, start):
        mark = match[0]
        if mark in "({[":
            depth += 1
        elif mark in ")}]":
            depth -= 1
            if mark == "}" and depth == 0:
                following = _NAMES.match(text, match.end())
                head = _ALIGNMENT.sub("", text[start : match.end()].split("{", 1)[0])
                if _CONCEPT.search(head):
                    continue
                if following is None or "(" in head or "namespace" in head:
                    return match.end()
        elif mark == ";" and depth == 0:
            return match.end()
    return len(text)


def _end_of_parameters(text: str) -> int:
    """Return the position behind a template's parameters. In parentheses, as in (1 << n), < and > end nothing."""
    depth = within = 0
    for at in range(text.index("<"), len(text)):
        within += (text[at] == "(") - (text[at] == ")")
        depth += ((text[at] == "<") - (text[at] == ">")) * (not within)
        if depth == 0:
            return at + 1
    return len(text)


def _without_comments(text: str) -> str:
    keep = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return keep.sub(lambda match: " " + "\n" * match[0].count("\n") if match[0].startswith("/") else match[0], text)

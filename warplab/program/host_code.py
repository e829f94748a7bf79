"""The host's side of a program: what a C++ compiler can take of CUDA C++ that has been preprocessed.

As nvcc does, a kernel becomes a function that hands over the addresses of its arguments, and `k<<<grid, block>>>(x)` a
call of it after a call that keeps the configuration. So templates, overloads and conversions are the compiler's affair.
Bodies of functions for the device alone go, unless they are constexpr; variables of the device stay as keys to the real
ones. In a program with Thrust or CUB, whose algorithms run on the host, bodies stay that a host can run.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from warplab.program.source_text import (
    blank,
    closing,
    end_of_variable,
    first_mark,
    function_body,
    masked,
    opening,
    regions,
    split,
)

IDENTITY = "warplab_kernel"  # a static variable of each kernel's function: its address stands for the kernel
_WORDS = re.compile(r"__(?:global|device|host|constant|shared|managed|grid_constant|noinline)__")
_ATTRIBUTE = re.compile(r"\b(?:__launch_bounds__|__cluster_dims__|__maxnreg__)\s*(?=\()")
_FOR_NVCC = re.compile(r"/(?:cub|cooperative_groups|cuda/__ptx)/")  # headers; kernels that use them have gone
_USED = re.compile(r"\bDevice[A-Z]\w+\s*::|\bthrust\s*::\s*(?!complex\b)")
LIBRARIES = re.compile(r"/(?:thrust|cub)/[^\n]*|/warplab_libraries\.h$")  # by their files
_OF_DEVICE = re.compile(
    r"\b(?:__\w+|(?:thread|block)Idx|(?:block|grid)Dim|atomic\w+|asm|curand\w*|cub|cg|cooperative_groups)\b"
)
_NAMED = re.compile(r"\b(?:__global__|__device__|__constant__|__managed__)\b")
_NAME_ENDS = re.compile(r"[\[={(]|__attribute__")  # of a variable that is declared
_TYPES = ("bool", "char", "double", "float", "int", "long", "short", "signed", "unsigned", "const", "volatile")
_SPECIFIER = re.compile(r"[;{}]|\b(?:public|private|protected)\s*:(?!:)")


class SourceError(Exception):
    """The program uses something that has no counterpart here; the message is a sentence."""


@dataclass
class HostCode:
    """`text` for the C++ compiler. `variables`: names of the device's variables, in the order of their numbers;
    `templates`: of those that are templates, which have no number before they are instantiated; `managed`: of those
    that the host reads and writes, too."""

    text: str = ""
    variables: list[str] = field(default_factory=list)
    templates: list[str] = field(default_factory=list)
    managed: list[str] = field(default_factory=list)


def host_code(preprocessed: str, cuda_folders: Sequence[str], unit: int) -> HostCode:
    """Return the host's part of the program's file number `unit`. Raises SourceError."""
    made, parts, scopes = HostCode(), [], [""]
    found = list(regions(preprocessed, cuda_folders))
    both = any(region.kind == "own" and _USED.search(region.text) for region in found)
    for region in found:
        text = region.text
        if region.kind == "own":
            text = _launches(_declarations(text, made, scopes, both))
        elif region.kind == "cuda":
            if _FOR_NVCC.search(region.path):
                text = blank(text)
            elif _NAMED.search(text):
                text = _declarations(text, None, [""])
        if region.kind != "library":
            text = _plain(text)
        parts.append(text)
    for number, name in enumerate(made.variables):
        told = f"warplab_variable((const void*)&::{name}, {unit}, {number})"
        if name in made.managed:
            told += f", warplab_managed((void*)&::{name}, sizeof ::{name})"
        parts.append(f"\nstatic const int warplab_variable_{number} = ({told}, 0);")
    made.text = "".join(parts) + "\n"
    return made


def _plain(text: str) -> str:
    while match := _ATTRIBUTE.search(text):
        end = closing(text, match.end()) + 1
        text = text[: match.start()] + blank(text[match.start() : end]) + text[end:]
    return _WORDS.sub("", text)


def _declarations(text: str, made: HostCode | None, scopes: list[str], both: bool = False) -> str:
    """Replace what is for the device, and add its variables to `made`; None: in headers, whose are not asked for.

    `scopes`: the names of the scopes that are open, "" for one that is no namespace, kept from region to region.
    `both`: functions of the device stay where a host can run them."""
    mask, done, at, seen = masked(text), list[str](), 0, 0
    while match := _NAMED.search(mask, max(at, seen)):
        start = max((m.end() for m in _SPECIFIER.finditer(mask, at, match.start())), default=at)
        first = first_mark(mask, match.end())
        head = mask[start:first]
        if mask[first] == "(" and not re.match(r"\(\s*\*", mask[first:]):
            body, end = function_body(mask, closing(mask, first) + 1)
            if (
                re.search(r"\]\s*(?:\([^()]*\)\s*)?$", mask[max(0, match.start() - 200) : match.start()])
                or body is None
            ):  # a lambda, a declaration
                seen = match.end() if body is None else first
                continue
            if "__global__" in head:
                replaced = f"{text[start:body]}{_stub(text[first + 1 : closing(mask, first)])}{blank(text[body:end])}"
            elif "__host__" in head or ((both or "constexpr" in head) and not _OF_DEVICE.search(mask, body, end)):
                seen = first
                continue
            else:
                stop = start + len(mask[start:body].rstrip())  # before line markers
                replaced = f"{text[start:stop]};{text[stop:body]}{blank(text[body:end])}"
            done.append(text[at:start] + replaced)
            at = end
            continue
        end = end_of_variable(mask, first)
        if made is not None and not re.search(r"\bextern\b|__shared__", mask[start:first]):
            scope = _scope(mask, start, scopes)
            if scope is not None:
                names = [_NAME_ENDS.split(part)[0].split()[-1] for part in split(text[match.end() : end])]
                kind = made.templates if re.match(r"\s*template\b", mask[start:first]) else made.variables
                kind += (found := [scope + name.lstrip("*&") for name in names])
                if "__managed__" in mask[start:first]:
                    made.managed += found
        seen = end
    _scope(mask, len(mask), scopes, keep=True)
    return "".join(done) + text[at:]


_BRACE = re.compile(r"[{}]")
_NAMESPACE = re.compile(r"namespace(?:\s+([\w:]+))?\s*(?:__attribute__\s*\(\(.*?\)\))?\s*$|extern\s+$")


def _scope(mask: str, end: int, scopes: list[str], *, keep: bool = False) -> str | None:
    """Return the namespaces around a position, as "a::b::"; None inside anything else."""
    open_now: list[str | None] = list(scopes)
    for match in _BRACE.finditer(mask, 0, end):
        if match[0] == "}":
            if len(open_now) > 1:
                open_now.pop()
            continue
        space = _NAMESPACE.search(mask, max(0, match.start() - 200), match.start())
        open_now.append(None if space is None else f"{space[1]}::" if space[1] else "")
    if keep:
        scopes[:] = [name if name is not None else "?" for name in open_now]
    names = [name for name in open_now]
    return None if any(name is None or name == "?" for name in names) else "".join(name for name in names if name)


def _stub(parameters: str) -> str:
    """Return the body of a kernel's function on the host."""
    names = []
    for number, parameter in enumerate(split(parameters)):
        if parameter == "void":
            continue
        name = _name(parameter)
        if name is None:
            raise SourceError(f"a kernel's parameter `{parameter}` (number {number + 1}) has no name: give it one")
        names.append(f"(void*)&{name}{'...' * ('...' in parameter)}")
    arguments = ", ".join((*names, "nullptr"))
    return f"{{ static char {IDENTITY}; void* warplab_arguments[] = {{{arguments}}}; " + (
        f"warplab_launch(&{IDENTITY}, warplab_arguments); }}"
    )


def _name(parameter: str) -> str | None:
    text = " ".join(_WORDS.sub("", parameter.split("=")[0]).split())
    inner = re.search(r"\(\s*[*&]\s*(\w+)\s*\)", text)
    if inner:
        return inner[1]
    match = re.match(r"(.*[\s*&>.])(\w+)\s*(?:\[[^\]]*\]\s*)*$", text)
    if match is None or match[2] in _TYPES or match[1].strip() in ("const", "struct", "volatile"):
        return None
    return match[2]


# Some formatters write `k << < g, b >> > (x)`. More than one space may be a string that is masked: `cout << "" << x`.
_OPENED, _CLOSED = re.compile("<< ?<"), re.compile(">> ?>")


def _launches(text: str) -> str:
    """Rewrite each `kernel<<<grid, block, bytes, stream>>>(arguments)`."""
    mask = masked(text)
    while opened := list(_OPENED.finditer(mask)):
        at, inside = opened[-1].span()
        closed = _CLOSED.search(mask, inside)
        call = closed and re.compile(r"\s*\(").match(mask, closed.end())
        if closed is None or call is None:
            raise SourceError(f"a launch is not understood: {' '.join(text[at : at + 60].split())}")
        start, last = _callee(mask, at), closing(mask, call.end() - 1) + 1
        configured = f"warplab_configure({text[inside : closed.start()]})"
        rewritten = f"({configured}, {text[start:at]}{text[closed.end() : last]})"
        text = text[:start] + rewritten + text[last:]
        mask = masked(text)
    return text


def _callee(mask: str, end: int) -> int:
    """Return where the expression begins that names the kernel and ends at `end`."""
    at = len(mask[:end].rstrip())
    while at:
        mark = mask[at - 1]
        if mark in ">)]":
            at = len(mask[: opening(mask, at - 1)].rstrip())
            if mark == ")" or not re.search(r"[\w\])>]$", mask[:at]):
                return at + (len(mask[at:]) - len(mask[at:].lstrip()))
            continue
        word = re.search(r"(?:\w+\s*)$", mask[:at])
        if word is None:
            break
        at = word.start()
        joint = re.search(r"(::|\.|->)\s*$", mask[:at])
        if joint is None:
            return at
        at = joint.start()
        at = len(mask[:at].rstrip())
        if not re.search(r"[\w\])>]$", mask[:at]):  # a leading ::
            return joint.start()
    return at

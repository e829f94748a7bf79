"""Modules of PTX text joined to one, as a linker would join them.

Numba compiles a kernel to one module. What the kernel calls may be in others: half-precision arithmetic, which Numba
takes from CUDA's headers, and the CUDA C++ or PTX that the kernel's author links.
"""

from __future__ import annotations

import re

_HEADER = re.compile(r"^\.(version|target|address_size)\b.*\n", re.M)
_SECTION = re.compile(r"^\s*\.section\b[^{]*\{[^}]*\}", re.M)
_FILE = re.compile(r"^(\s*\.file\s+)(\d+)(.*)$", re.M)
_LOC = re.compile(
    r"^(?P<head>\s*\.loc\s+)(?P<place>\d+\s+\d+\s+\d+)(?P<inlined>[^\n]*?inlined_at\s+(?P<caller>\d+\s+\d+\s+\d+))?.*$",
    re.M,
)
# A function or variable of the module: linkage, its name, and "{" or ";" for a function with or without a body.
_FUNCTION = re.compile(
    r"^(?P<linkage>\.extern\s+|\.visible\s+|\.weak\s+)?\.func\b(?:\s*\.\w+)*\s*(?:\([^)]*\)\s*)?"
    r"(?P<name>[\w$]+)(?P<rest>[^{;]*)(?P<end>[{;])",
    re.M,
)
_EXTERN_WITH_RESULT = re.compile(r"^\.extern\s+\.func\s+(\([^)]*\))\s*([\w$]+)", re.M)
_VARIABLE = re.compile(
    r"^(?P<linkage>\.extern\s+|\.visible\s+|\.weak\s+|\.common\s+)?\.(?:global|const|shared)\b[^;=]*?"
    r"(?P<name>[\w$]+)(?:\[[^\]]*\])*\s*(?=[=;])",
    re.M,
)


def link(modules: list[str]) -> str:
    """Join `modules` to one module of PTX: the first, followed by what the others define.

    A name that only its own module may see keeps its meaning where another module uses it, too. Raises ValueError for a
    name that two modules define for all.
    """
    first, *others = modules
    if not others:
        return first
    parts, files = [first], max((int(number) for _, number, _ in _FILE.findall(first)), default=0)
    for number, module in enumerate(others, 2):
        module = _SECTION.sub("", _HEADER.sub("", module.rstrip("\0")))
        module, files = _renumbered(_called_lines(module), files)
        parts.append(_with_own_names(module, f"$m{number}"))
    return _declared(_with_results("\n".join(part.rstrip("\0") for part in parts)))


def undefined(ptx: str) -> list[str]:
    """List the functions that a module declares and does not define."""
    found = [(match["name"], match["linkage"] or "", match["end"]) for match in _FUNCTION.finditer(ptx)]
    defined = {name for name, _, end in found if end == "{"}
    return [name for name, linkage, _ in found if linkage.startswith(".extern") and name not in defined]


def _called_lines(module: str) -> str:
    """Give code inlined from another file, such as a header, the line it was inlined into.

    The rest of the line information is in a .section, and a module may have only one of each name.
    """

    def line(match: re.Match) -> str:
        place, caller = match["place"], match["caller"]
        if caller is not None and caller.split()[0] != place.split()[0]:
            place = caller
        return match["head"] + place

    return _LOC.sub(line, module)


def _renumbered(module: str, files: int) -> tuple[str, int]:
    """Renumber the module's files, counting on from `files`; return the module and the last number."""
    numbers = {number: str(files + k) for k, (_, number, _) in enumerate(_FILE.findall(module), 1)}
    module = _FILE.sub(lambda match: f"{match[1]}{numbers[match[2]]}{match[3]}", module)

    def line(match: re.Match) -> str:
        file, *rest = match["place"].split()
        return match["head"] + " ".join([numbers.get(file, file), *rest])

    return _LOC.sub(line, module), files + len(numbers)


def _with_own_names(module: str, suffix: str) -> str:
    """Rename what no other module may see, as two modules may use one name."""
    own = {match["name"] for match in _FUNCTION.finditer(module) if not match["linkage"] or "weak" in match["linkage"]}
    own |= {
        match["name"]
        for match in _VARIABLE.finditer(module)
        if not match["linkage"] or match["linkage"].strip() in (".weak", ".common")
    }
    if not own:
        return module
    names = "|".join(re.escape(name) for name in sorted(own, key=len, reverse=True))
    return re.sub(rf"(?<![\w$%.])({names})(?![\w$])", rf"\1{suffix}", module)


def _with_results(ptx: str) -> str:
    """Give functions that return nothing the result that their callers declare, and do not use.

    So Numba calls functions in C that return void; a linker does not mind.
    """
    for results, name in _EXTERN_WITH_RESULT.findall(ptx):
        ptx = re.sub(rf"^(\.(?:visible|weak)\s+\.func\s+)({re.escape(name)}\()", rf"\1{results} \2", ptx, flags=re.M)
    return ptx


def _declared(ptx: str) -> str:
    """Turn declarations of functions that another module defines into declarations of the module's own."""
    linkages: dict[str, str] = {}
    for match in _FUNCTION.finditer(ptx):
        if match["end"] == "{":
            if match["name"] in linkages:
                raise ValueError(
                    f"function {match['name']} is defined in two of the linked files; link only one definition"
                )
            linkages[match["name"]] = (match["linkage"] or "").strip()

    def declaration(match: re.Match) -> str:
        linkage = match["linkage"] or ""
        if not linkage.startswith(".extern") or match["name"] not in linkages:
            return match[0]
        return f"{linkages[match['name']]} {match[0].removeprefix(linkage)}".lstrip()

    return _FUNCTION.sub(declaration, ptx)

"""Modules of PTX text joined to one, as a linker would join them.

Numba compiles a kernel to one module. What the kernel calls may be in others: half-precision arithmetic, which Numba
takes from CUDA's headers, and the CUDA C++ or PTX that the kernel's author links.
"""

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
_FUNCTION_ENDS = re.compile(r"^(\$L__func_(?:begin|end)\d+):", re.M)  # labels for what a debugger reads
_EXTERN_WITH_RESULT = re.compile(r"^\.extern\s+\.func\s+(\([^)]*\))\s*([\w$]+)", re.M)
_VARIABLE = re.compile(
    r"^(?P<linkage>\.extern\s+|\.visible\s+|\.weak\s+|\.common\s+)?\.(?:global|const|shared)\b[^;=]*?"
    r"(?P<name>[\w$]+)(?:\[[^\]]*\])*\s*(?=[=;])",
    re.M,
)

_IN_MEMORY = r"\s+\.(?:global|const)\b[^;=]*?(?P<name>[\w$]+)(?:\[[^\]]*\])*\s*"
_DECLARED_VARIABLE = re.compile(rf"^\.extern{_IN_MEMORY};", re.M)
_DEFINED_VARIABLE = re.compile(rf"^\.visible{_IN_MEMORY}(?:=[^;]*)?;", re.M)


def link(modules: list[str]) -> str:
    """Join `modules` to one module of PTX: the first, followed by what the others define.

    A name that only its own module may see keeps its meaning where another module uses it, too. Raises ValueError for a
    name that two modules define for all.
    """
    first, *others = modules
    if not others:
        return first
    parts, files = [first], max((int(number) for _, number, _ in _FILE.findall(first)), default=0)
    wanted = _declared_elsewhere(modules) - {
        match["name"] for match in _FUNCTION.finditer(first) if match["end"] == "{"
    }
    for number, module in enumerate(others, 2):
        module = _SECTION.sub("", _HEADER.sub("", module.rstrip("\0")))
        module, files = _renumbered(_called_lines(module), files)
        parts.append(_with_own_names(module, f"$m{number}", wanted))
    return _declared(_with_results(_with_variables("\n".join(part.rstrip("\0") for part in parts))))


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


def _declared_elsewhere(modules: list[str]) -> set[str]:
    """List the functions that a module declares and leaves to another one."""
    found = (match for module in modules for match in _FUNCTION.finditer(module))
    return {match["name"] for match in found if (match["linkage"] or "").startswith(".extern") and match["end"] == ";"}


def _with_own_names(module: str, suffix: str, wanted: set[str]) -> str:
    """Rename what no other module may see, as two modules may use one name.

    A weak function is a module's own copy, but for the first of a name in `wanted`, which is then taken from there.
    """
    functions = list(_FUNCTION.finditer(module))
    weak = {match["name"] for match in functions if "weak" in (match["linkage"] or "") and match["end"] == "{"}
    own = {match["name"] for match in functions if not match["linkage"] or "weak" in match["linkage"]} - (weak & wanted)
    wanted -= weak
    own |= set(_FUNCTION_ENDS.findall(module))
    own |= {
        match["name"]
        for match in _VARIABLE.finditer(module)
        if not match["linkage"] or match["linkage"].strip() in (".weak", ".common")
    }
    if not own:
        return module
    names = "|".join(re.escape(name) for name in sorted(own, key=len, reverse=True))
    return re.sub(rf"(?<![\w$%.])({names})(?![\w$])", rf"\1{suffix}", module)


def _with_variables(ptx: str) -> str:
    """Define a variable where another module declares it, as the assembler wants one before its first use."""
    declared = {match["name"] for match in _DECLARED_VARIABLE.finditer(ptx)}
    found = [match for match in _DEFINED_VARIABLE.finditer(ptx) if match["name"] in declared]
    defined = {match["name"]: match[0] for match in found}
    if len(defined) < len(found):
        raise ValueError(f"of {', '.join(defined)} two of the linked files define one; link only one definition")
    left = {**defined}
    ptx = _DEFINED_VARIABLE.sub(lambda match: "" if match["name"] in defined else match[0], ptx)
    return _DECLARED_VARIABLE.sub(lambda m: left.pop(m["name"], "" if m["name"] in defined else m[0]), ptx)


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

    known: set[str] = set()

    def declaration(match: re.Match) -> str:
        name, linkage = match["name"], match["linkage"] or ""
        again, extern = name in known, linkage.startswith(".extern")
        known.add(name)
        if not extern or name not in linkages:
            return match[0]
        # The assembler takes a declaration behind the definition for a second one.
        return "" if again else f"{linkages[name]} {match[0].removeprefix(linkage)}".lstrip()

    return _FUNCTION.sub(declaration, ptx)

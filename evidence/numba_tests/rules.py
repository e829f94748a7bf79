"""Which of numba-cuda's tests do not apply to the stand-in: decided from what a test names, never from its result."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

# Methods that unittest calls around each test of a class.
_AROUND = ("setUp", "tearDown", "setUpClass", "tearDownClass")


@dataclass(frozen=True)
class Rule:
    """Tests that use one of `names`, and one of `also` if there are any, do not apply, for `reason`.

    A name is qualified ("numba.cuda.cudadrv.driver.driver", with what is in it), or a method of any object
    (".get_ipc_handle"), or an argument of a call ("numba.cuda.jit(cache=True)").
    """

    name: str
    reason: str
    names: tuple[str, ...]
    also: tuple[str, ...] = ()

    def applies_to(self, used: Iterable[str]) -> bool:
        def uses(names: tuple[str, ...]) -> bool:
            return any(name == have or have.startswith(name + ".") for have in used for name in names)

        return uses(self.names) and (not self.also or uses(self.also))


_DRIVER = (
    *("driver", "Driver", "Device", "binding", "CudaAPIError", "launch_kernel", "is_device_memory"),
    *("device_memset", "host_to_device", "device_to_host", "device_to_device", "device_extents", "device_memory_size"),
)
_CORE = ("Device", "Buffer", "LaunchConfig", "launch", "utils", "Program", "Linker")
_LINKABLE = ("numba.cuda", "numba.cuda.cudadrv.linkable_code")
_CODE = ("CUSource", "PTXSource", "LinkableCode")
_CALLBACKS = ("setup", "teardown")  # which get an object of the driver

RULES: tuple[Rule, ...] = (
    Rule(
        "the driver",
        "calls NVIDIA's driver, or asks for objects that only the driver makes (modules, functions, memory by handle)",
        (
            *(f"numba.cuda.cudadrv.driver.{name}" for name in _DRIVER),
            *(f"cuda.core.{name}" for name in _CORE),
            "cuda.core.experimental",
            "cuda.bindings.driver",
            "numba.cuda.cudadrv.nvrtc.compile",
            *(f".{name}" for name in ["create_module_ptx", "create_module_image", "get_cufunc", "_codelibrary"]),
            *(f"{module}.{code}({call}_callback=)" for module in _LINKABLE for code in _CODE for call in _CALLBACKS),
            *(f".{name}" for name in ["memalloc", "memhostalloc", "memallocmanaged", "mempin", "get_global_symbol"]),
        ),
    ),
    Rule(
        "freeing memory",
        "looks into the queue of the driver's objects that are to be freed; the simulator frees at once",
        (".memory_manager", ".deallocations", "numba.cuda.defer_cleanup"),
    ),
    Rule(
        "memory managers",
        "replaces Numba's manager of the driver's memory",
        (
            "numba.cuda.HostOnlyCUDAMemoryManager",
            "numba.cuda.BaseCUDAMemoryManager",
            "numba.cuda.GetIpcHandleMixin",
            "numba.cuda.set_memory_manager",
            "numba.cuda.MemoryPointer",
        ),
    ),
    Rule(
        "times",
        "asks for the time between events; there is no GPU here whose time it would be",
        ("numba.cuda.event_elapsed_time", ".elapsed_time"),
    ),
    Rule(
        "several processes",
        "shares device memory between processes (IPC)",
        (".get_ipc_handle", "numba.cuda.open_ipc_array", "numba.cuda.cudadrv.driver.IpcHandle"),
    ),
    Rule(
        "the driver's linker",
        "calls nvJitLink or the driver's linker, or gives it compiled code (cubin, fatbin, archive, object, LTO-IR)",
        (
            "numba.cuda.cudadrv.driver._Linker",
            "numba.cuda.cudadrv.driver.LinkerError",
            ".inspect_lto_ptx",
            "numba.cuda.Archive",
            "numba.cuda.Cubin",
            "numba.cuda.Fatbin",
            "numba.cuda.Object",
            "numba.cuda.LTOIR",
        ),
    ),
    Rule("benchmarks", "measures the time that a launch takes", ("pytest.mark.benchmark", "benchmark")),
)
# What Numba does and the stand-in does not, on purpose. These tests apply and do not pass.
DIFFERENCES: tuple[Rule, ...] = (
    Rule(
        "lines",
        "lines are recorded whether lineinfo=True or not, as every error and report of the simulator names them",
        ("numba.cuda.jit(lineinfo=False)", "self._check(expect=False)"),
    ),
    Rule(
        "cached files",
        "counts the files of the caches for CPU and GPU together; those of the stand-in have a name of their own",
        (".assign_cpu",),
        (".check_pycache",),
    ),
)


def used_names(source: str) -> dict[str, set[str]]:
    """Return for each test of a file, "Class::test" or "test", the names that it and what it calls in the file use."""
    return _File(ast.parse(source)).tests()


class _File:
    def __init__(self, tree: ast.Module) -> None:
        self.imports: dict[str, str] = {}
        self.defined: dict[str, list[ast.stmt]] = {}
        for statement in _statements(tree.body):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                self._imported(statement, self.imports)
            for name in _bound(statement):
                self.defined.setdefault(name, []).append(statement)
        self._of: dict[str, set[str]] = {}

    def tests(self) -> dict[str, set[str]]:
        found = {}
        for name, statements in self.defined.items():
            for statement in statements:
                if isinstance(statement, ast.FunctionDef) and name.startswith("test"):
                    found[name] = self._closure([statement], None)
                elif isinstance(statement, ast.ClassDef):
                    for method, node in self._methods(statement).items():
                        if method.startswith("test"):
                            found[f"{name}::{method}"] = self._of_method(statement, node)
        return found

    def _imported(self, node: ast.Import | ast.ImportFrom, into: dict[str, str]) -> None:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                into[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
            elif alias.asname:
                into[alias.asname] = alias.name
            else:
                into[alias.name.split(".")[0]] = alias.name.split(".")[0]

    def _methods(self, cls: ast.ClassDef) -> dict[str, ast.FunctionDef]:
        """Methods of a class, with those of its bases in the file."""
        found: dict[str, ast.FunctionDef] = {}
        for base in cls.bases:
            for statement in self.defined.get(base.id, []) if isinstance(base, ast.Name) else []:
                if isinstance(statement, ast.ClassDef):
                    found |= self._methods(statement)
        found |= {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        return found

    def _of_method(self, cls: ast.ClassDef, method: ast.FunctionDef) -> set[str]:
        methods = self._methods(cls)
        around = [methods[name] for name in _AROUND if name in methods]
        body = [node for node in cls.body if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        return self._closure([method, *around, *body, *cls.decorator_list], methods)

    def _closure(self, nodes: list, methods: dict[str, ast.FunctionDef] | None) -> set[str]:
        used: set[str] = set()
        waiting, seen = list(nodes), {id(node) for node in nodes}
        while waiting:
            names = self._names(waiting.pop())
            used |= names
            for name in names:
                owner, _, attribute = name.partition(".")
                more: list[ast.stmt] = list(self.defined.get(owner, []))
                if owner == "self" and methods:
                    more = [methods[part] for part in attribute.split(".")[:1] if part in methods]
                for node in more:
                    if id(node) not in seen and not isinstance(node, ast.Import | ast.ImportFrom):
                        seen.add(id(node))
                        waiting.append(node)
        return used

    def _names(self, node: ast.AST) -> set[str]:
        """Names that a piece of code uses, qualified where they are imported."""
        imports = dict(self.imports)
        for part in ast.walk(node):
            if isinstance(part, ast.Import | ast.ImportFrom):
                self._imported(part, imports)
        found = set()
        for part in ast.walk(node):
            if isinstance(part, ast.Name | ast.Attribute):
                found.add(_dotted(part, imports))
            if isinstance(part, ast.Attribute):
                found.add("." + part.attr)
            if isinstance(part, ast.Call):
                function = _dotted(part.func, imports)
                for keyword in part.keywords:
                    found.add(f"{function}({keyword.arg}=)")
                    if isinstance(keyword.value, ast.Constant):
                        found.add(f"{function}({keyword.arg}={keyword.value.value!r})")
        return found


def _statements(body: list[ast.stmt]) -> Iterable[ast.stmt]:
    """Statements of a module, also those under `if` and `try`."""
    for statement in body:
        yield statement
        for field in ("body", "orelse", "finalbody"):
            if isinstance(statement, ast.If | ast.Try | ast.With):
                yield from _statements(getattr(statement, field, []))


def _bound(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]


def _dotted(node: ast.AST, imports: dict[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(imports.get(node.id, node.id))
    return ".".join(reversed(parts))

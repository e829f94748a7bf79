"""Compiles functions on 64-bit integers to machine code of this processor, with the LLVM that Numba brings (llvmlite).

Source is a small part of Python: `def`, assignments, `if`, `while`, `for … in range(n)`, `return` (else 0), integers.
`for i in lanes(32)` runs its body for 32 numbers at once, in vectors; in `lanes(64, 8)` these have 8 bits each, and
`pick1(a, i & 3)` … `pick8` load an item behind `a` whose number is known when compiling. All other values are 64 bits
wide, and all wrap; `>>` shifts zeros in, `<` compares as signed. `ld1` … `ld8` and `st1` … `st8` read
and write memory at an address, `call(address, …)` calls another function, `f32add(a, b)` takes the bits of floats,
`f32flush(a)` makes a subnormal number a zero.
A function takes tens of milliseconds to compile, but for one that an earlier process has compiled (`kept_code`).
"""

import ast
import ctypes
import functools
import hashlib
import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplab.simulator.translate import kept_code

_ARITHMETIC: dict[type, str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shl",
    ast.RShift: "lshr",
}
_COMPARE: dict[type, str] = {
    ast.Lt: "slt",
    ast.LtE: "sle",
    ast.Gt: "sgt",
    ast.GtE: "sge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
_FLOATS = {"32": "float", "64": "double"}
# The tests become one bit, as conditions.
_TESTS = {"ult", "ule"}
_FLOAT_TESTS = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "nan": "uno"}
_BINARY = {"udiv": "udiv", "urem": "urem", "sdiv": "sdiv", "srem": "srem", "ashr": "ashr"}
_FLOAT_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_FLOAT_FUNCTIONS = {"sqrt": 1, "fma": 3, "floor": 1, "ceil": 1, "trunc": 1, "rint": 1}


class Untranslatable(Exception):
    """The source uses what this compiler does not know."""


@functools.cache
def available() -> bool:
    """Tell whether there is a compiler for this processor."""
    try:
        _compiler()
    except Exception:  # llvmlite is missing, or does not know the processor
        return False
    return True


def why_not(make: Callable[[], Any]) -> str:
    """Return why `make` cannot make machine code; "" if it has made it."""
    return _failure(make) if available() else "there is no compiler"


@functools.cache
def _failure(make: Callable[[], Any]) -> str:
    try:
        make()
    except (RuntimeError, OSError) as error:  # from LLVM
        return str(error) or type(error).__name__
    return ""


@functools.cache
def _compiler() -> tuple[Any, Any]:
    """Return the target machine and the linker of this process: one of its own for each piece of code costs 0.7 MB."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    machine = target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=2, jit=True)
    return machine, llvm.create_lljit_compiler()


_numbers = itertools.count()


@functools.cache
def _made_by() -> str:
    """Return what code depends on besides its source: this compiler, LLVM and the processor."""
    import llvmlite
    import llvmlite.binding as llvm

    machine, _ = _compiler()
    processor = machine.triple, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return repr((Path(__file__).read_bytes(), llvmlite.__version__, llvm.llvm_version_info, *processor))


class Source:
    """What is to be compiled. `constants`: names that stand for numbers; `others`: for functions elsewhere, whose
    addresses differ from process to process. `kept`: the code, if an earlier process has compiled it."""

    def __init__(self, text: str, constants: Mapping[str, int], others: Iterable[str] = ()) -> None:
        self.text, self.constants, self.others = text, constants, tuple(others)
        made_from = repr((_made_by(), text, sorted(constants.items()), self.others))
        self.key = hashlib.sha256(made_from.encode()).hexdigest()

    @functools.cached_property
    def kept(self) -> bytes | None:
        return kept_code.find(self.key)

    def code(self) -> bytes:
        """Return machine code that is still to be linked."""
        import llvmlite.binding as llvm

        machine, _ = _compiler()
        module = llvm.parse_assembly(to_llvm(self.text, self.constants, self.others))
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()  # all further passes take longer than they gain
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1)))
        code: bytes = machine.emit_object(module)
        kept_code.keep(self.key, code)
        return code


class Compiled:
    """Machine code. `others`: addresses of functions elsewhere, by name. `address(name)` of a function in it, valid as
    long as this object lives."""

    def __init__(self, source: Source, others: Mapping[str, int] | None = None) -> None:
        import llvmlite.binding as llvm

        library = llvm.JITLibraryBuilder().add_object_img(source.kept or source.code()).add_current_process()
        for name, address in (others or {}).items():
            library.import_symbol(name, address)
        for name in re.findall(r"^def (\w+)", source.text, re.MULTILINE):
            library.export_symbol(name)
        self._code = library.link(_compiler()[1], f"warplab{next(_numbers)}")

    def address(self, name: str) -> int:
        return self._code[name]

    def function(self, name: str, arguments: int = 1) -> Any:
        """Return a function in it, which keeps the code."""
        function: Any = ctypes.CFUNCTYPE(*[ctypes.c_int64] * (1 + arguments))(self._code[name])
        function.code = self
        return function


def to_llvm(source: str, constants: Mapping[str, int], others: Iterable[str] = ()) -> str:
    """Return LLVM's assembly for functions in `source`. `constants`: names that stand for numbers; `others`: for the
    addresses of functions elsewhere."""
    tree = ast.parse(source)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    declared = {name: f"@{name} = external global i8" for name in others}
    texts = [_Function(node, constants, functions, declared).text() for node in tree.body]
    return "\n".join([*texts, *declared.values()])


@dataclass(frozen=True)
class _Value:
    """A value: one of 64 bits, or a `vector` of those of all lanes, with as many bits as the loop says; if it is one,
    lanes have `step` more each."""

    text: str
    vector: bool = False
    step: int = 0


class _Function:
    """Writes one function.

    In a loop over lanes (`width` of them, with `size` bits; 0 and 64 elsewhere), `names` are the values that the loop
    has set. There, both sides of a condition are computed, and one of them is taken, lane by lane; so a condition may
    not hold a store. `either(x)`: the bits that any lane has. What is the same for each lane keeps its value behind
    the loop.
    """

    def __init__(self, node: Any, constants: Mapping[str, int], functions: set[str], declared: dict[str, str]) -> None:
        self.node, self.constants, self.functions, self.declared = node, constants, functions, declared
        self.lines: list[str] = []
        self.variables: dict[str, None] = {}
        self.number = 0
        self.closed = False  # has the present LLVM block its last instruction?
        self.width = self.inside = 0  # lanes; of how many conditions in a loop over them
        self.size, self.lane = "64", ""  # `lane`: the name of their number
        self.names: dict[str, _Value] = {}

    def text(self) -> str:
        arguments = [a.arg for a in self.node.args.args]
        for name in arguments:
            self.store(name, f"%{name}")
        self.body(self.node.body)
        if not self.closed:
            self.line("ret i64 0")
        head = f"define i64 @{self.node.name}({', '.join(f'i64 %{a}' for a in arguments)}) nounwind {{\nentry:"
        places = [f"  %v.{name} = alloca i64" for name in self.variables]
        return "\n".join([head, *places, *self.lines, "}"])

    # -- writing lines -------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        if not self.closed:
            self.lines.append(f"  {text}")
            self.closed = text.startswith(("br ", "ret "))

    def set(self, text: str) -> str:
        self.number += 1
        name = f"%t{self.number}"
        self.line(f"{name} = {text}")
        return name

    def start(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.closed = False

    def labels(self, *names: str) -> list[str]:
        self.number += 1
        return [f"{name}{self.number}" for name in names]

    def store(self, name: str, value: str) -> None:
        self.variables[name] = None
        self.line(f"store i64 {value}, ptr %v.{name}")

    def kind(self, vector: bool, size: str = "", of: str = "i") -> str:
        """Return LLVM's name of integers or floats of a size, that of values if none is given, of one or all lanes."""
        size = size or self.own(vector)
        one = f"i{size}" if of == "i" else _FLOATS[size]
        return f"<{self.width} x {one}>" if vector else one

    def own(self, vector: bool) -> str:
        """Return how many bits a value has."""
        return self.size if vector else "64"

    def intrinsic(self, name: str, vector: bool, size: str, of: str, arguments: list[str], more: str = "") -> str:
        """Return the value of a function of LLVM whose arguments are all of one kind. `more`: such as a flag."""
        kind, of_lanes = self.kind(vector, size, of), f"v{self.width}" if vector else ""
        function = f"llvm.{name}.{of_lanes}{of}{size}"
        kinds = ", ".join([kind] * len(arguments) + ([more.split()[0]] if more else []))
        self.declared[function] = f"declare {kind} @{function}({kinds})"
        given = ", ".join([*(f"{kind} {a}" for a in arguments), *([more] if more else [])])
        return self.set(f"call {kind} @{function}({given})")

    # -- statements ----------------------------------------------------------------------------------------------------

    def body(self, statements: list[Any]) -> None:
        for statement in statements:
            method = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if method is None or (self.width and isinstance(statement, ast.Return | ast.While | ast.For)):
                raise Untranslatable(ast.unparse(statement))
            method(statement)

    def _expr(self, node: Any) -> None:
        self.value(node.value)

    def _assign(self, node: Any) -> None:
        name, value = node.targets[0].id, self.value(node.value)
        if self.width:
            self.names[name] = value
        if not (value.vector or value.step or self.inside):
            self.store(name, value.text)

    def _return(self, node: Any) -> None:
        self.line(f"ret i64 {self.one(node.value)}")

    def _if(self, node: Any) -> None:
        if self.width:
            return self._if_of_lanes(node)
        yes, no, end = self.labels("yes", "no", "end")
        self.condition(node.test, yes, no)
        for name, statements in ((yes, node.body), (no, node.orelse)):
            self.start(name)
            self.body(statements)
            self.line(f"br label %{end}")
        return self.start(end)

    def _if_of_lanes(self, node: ast.If) -> None:
        bits, before, sides = self.test(node.test), self.names, []
        self.inside += 1
        for statements in (node.body, node.orelse):
            self.names = dict(before)
            self.body(statements)
            sides.append(self.names)
        self.inside -= 1
        self.names = before
        for name in {**sides[0], **sides[1]}:
            yes, no = (side.get(name) for side in sides)
            if yes != no:  # what only one side knows is not wanted where the other one was taken
                self.names[name] = self.select(bits, yes or no, no or yes)

    def _while(self, node: Any) -> None:
        again, inside, end = self.labels("again", "inside", "end")
        self.line(f"br label %{again}")
        self.start(again)
        self.condition(node.test, inside, end)
        self.start(inside)
        self.body(node.body)
        self.line(f"br label %{again}")
        self.start(end)

    def _for(self, node: Any) -> None:
        """Write `for i in range(n)`: the variable is counted before the body may change it."""
        name = node.target.id
        if node.iter.func.id == "lanes":
            self.width, *sizes = (given.value for given in node.iter.args)
            self.lane = name
            self.size, self.names = str(sizes[0]) if sizes else "64", {name: _Value("0", step=1)}
            self.body(node.body)
            self.width, self.size, self.names = 0, "64", {}
            return
        again, inside, end = self.labels("again", "inside", "end")
        counter = f"{name}.{again}"
        self.store(counter, "0")
        last = self.one(node.iter.args[0])
        self.line(f"br label %{again}")
        self.start(again)
        now = self.set(f"load i64, ptr %v.{counter}")
        self.line(f"br i1 {self.set(f'icmp slt i64 {now}, {last}')}, label %{inside}, label %{end}")
        self.start(inside)
        self.store(name, now)
        self.store(counter, self.set(f"add nsw i64 {now}, 1"))
        self.body(node.body)
        self.line(f"br label %{again}")
        self.start(end)

    # -- conditions ----------------------------------------------------------------------------------------------------

    def condition(self, node: Any, yes: str, no: str) -> None:
        """Go to one of two labels. `and` and `or` look at their second side only where they must."""
        if isinstance(node, ast.BoolOp):
            for part in node.values[:-1]:
                (more,) = self.labels("more")
                either = isinstance(node.op, ast.Or)
                self.condition(part, yes if either else more, more if either else no)
                self.start(more)
            return self.condition(node.values[-1], yes, no)
        return self.line(f"br i1 {self.test(node)}, label %{yes}, label %{no}")

    def test(self, node: Any) -> str:
        """Return one bit, or one for each lane."""
        lanes = bool(self.width)
        found = self.comparison(node)
        if found is not None:
            how, nodes, size = found
            a, b = (self.all(self.value(x)) if lanes else self.one(x) for x in nodes)
            if size:
                a, b = (self.float(x, lanes, size) for x in (a, b))
                return self.set(f"fcmp {how} {self.kind(lanes, size, 'f')} {a}, {b}")
            return self.set(f"icmp {how} {self.kind(lanes)} {a}, {b}")
        if lanes and isinstance(node, ast.BoolOp):
            first, *rest = (self.test(part) for part in node.values)
            for bits in rest:
                how = "or" if isinstance(node.op, ast.Or) else "and"
                first = self.set(f"{how} {self.kind(True, '1')} {first}, {bits}")
            return first
        value = self.value(node)
        zero = "zeroinitializer" if lanes else "0"
        return self.set(f"icmp ne {self.kind(lanes)} {self.all(value) if lanes else value.text}, {zero}")

    @staticmethod
    def comparison(node: Any) -> tuple[str, list[Any], str] | None:
        """Return LLVM's word for a comparison, what it compares, and the size of floats; None for anything else."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return _COMPARE[type(node.ops[0])], [node.left, node.comparators[0]], ""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name in _TESTS:
                return name, node.args, ""
            if name[:1] == "f" and name[1:3] in _FLOATS and name[3:] in _FLOAT_TESTS:
                return _FLOAT_TESTS[name[3:]], node.args, name[1:3]
        return None

    # -- values --------------------------------------------------------------------------------------------------------

    def all(self, value: _Value) -> str:
        """Return the vector of a value."""
        if value.vector:
            return value.text
        kind, size = self.kind(True), int(self.size)
        if not value.step and value.text.lstrip("-").isdigit():
            number = int(value.text) & (1 << size) - 1
            return f"splat (i{size} {number - (number >> size - 1 << size)})"
        text = value.text if size == 64 else self.set(f"trunc i64 {value.text} to i{size}")
        one = self.set(f"insertelement {kind} poison, i{size} {text}, i32 0")
        every = self.set(f"shufflevector {kind} {one}, {kind} poison, <{self.width} x i32> zeroinitializer")
        if not value.step:
            return every
        steps = ", ".join(f"i{size} {k * value.step}" for k in range(self.width))
        return self.set(f"add {kind} {every}, <{steps}>")

    def alike(self, values: list[_Value]) -> tuple[list[str], bool]:
        """Return values as vectors, if any of them differs from lane to lane, and whether that is so."""
        vector = any(value.vector or value.step for value in values)
        return [self.all(value) if vector else value.text for value in values], vector

    def one(self, node: Any) -> str:
        return self.value(node).text

    def select(self, bits: str, yes: Any, no: Any) -> _Value:
        kind, a, b = self.kind(True), self.all(yes), self.all(no)
        return _Value(self.set(f"select {self.kind(True, '1')} {bits}, {kind} {a}, {kind} {b}"), True)

    def value(self, node: Any) -> _Value:
        if isinstance(node, ast.Constant):
            number = int(str(node.value)) & 0xFFFFFFFFFFFFFFFF
            return _Value(str(number - (number >> 63 << 64)))
        if isinstance(node, ast.Name):
            if node.id in self.names:
                return self.names[node.id]
            if node.id in self.constants:
                return _Value(str(self.constants[node.id]))
            if node.id in self.declared:
                return _Value(self.set(f"ptrtoint ptr @{node.id} to i64"))
            if node.id not in self.variables:
                raise Untranslatable(f"unknown name {node.id}")
            return _Value(self.set(f"load i64, ptr %v.{node.id}"))
        if isinstance(node, ast.BinOp):
            return self.binary(_ARITHMETIC[type(node.op)], self.value(node.left), self.value(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.binary("sub", _Value("0"), self.value(node.operand))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return self.binary("xor", _Value("-1"), self.value(node.operand))
        if isinstance(node, ast.IfExp):
            if self.width:
                return self.select(self.test(node.test), self.value(node.body), self.value(node.orelse))
            return _Value(self.choice(node))
        if self.comparison(node) is None and isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self.called(node.func.id, node.args)
        if isinstance(node, ast.BoolOp) and not self.width:
            return _Value(self.choice(ast.IfExp(node, ast.Constant(1), ast.Constant(0))))
        if isinstance(node, ast.BoolOp) or self.comparison(node) is not None:
            return self.widened("zext", self.test(node), "1", bool(self.width))
        raise Untranslatable(ast.unparse(node))

    def choice(self, node: ast.IfExp) -> str:
        yes, no, end = self.labels("yes", "no", "end")
        self.condition(node.test, yes, no)
        name = f"choice.{end}"
        for label, side in ((yes, node.body), (no, node.orelse)):
            self.start(label)
            self.store(name, self.one(side))
            self.line(f"br label %{end}")
        self.start(end)
        return self.set(f"load i64, ptr %v.{name}")

    def binary(self, operation: str, a: _Value, b: _Value) -> _Value:
        vector = a.vector or b.vector
        if not vector:
            step: int | None = None  # from lane to lane, if it is known
            if not (a.step or b.step):
                step = 0
            elif operation in ("add", "sub"):
                step = a.step + (b.step if operation == "add" else -b.step)
            elif operation == "mul" and not (a.step and b.step):
                factor = (b if a.step else a).text
                step = (a.step or b.step) * int(factor) if factor.isdigit() else None
            if step:
                return _Value(self.set(f"{operation} i64 {a.text}, {b.text}"), step=step)
            vector = step is None
        (x, y), kind = [self.all(one) if vector else one.text for one in (a, b)], self.kind(vector)
        if operation in ("udiv", "urem", "sdiv", "srem"):  # what would end the process is divided by 1

            def equal(one: str, number: int) -> str:
                return self.set(f"icmp eq {kind} {one}, {self.all(_Value(str(number))) if vector else number}")

            bad, bits = equal(y, 0), self.kind(vector, "1")
            if operation[0] == "s":
                both = self.set(f"and {bits} {equal(y, -1)}, {equal(x, -1 << int(self.own(vector)) - 1)}")
                bad = self.set(f"or {bits} {bad}, {both}")
            y = self.set(f"select {bits} {bad}, {kind} {self.all(_Value('1')) if vector else 1}, {kind} {y}")
        return _Value(self.set(f"{operation} {kind} {x}, {y}"), vector)

    def float(self, bits: str, vector: bool, size: str) -> str:
        small = self.narrowed(bits, vector, size)
        return self.set(f"bitcast {self.kind(vector, size)} {small} to {self.kind(vector, size, 'f')}")

    def bits(self, number: str, vector: bool, size: str) -> _Value:
        bits = self.set(f"bitcast {self.kind(vector, size, 'f')} {number} to {self.kind(vector, size)}")
        return self.widened("zext", bits, size, vector)

    def narrowed(self, bits: str, vector: bool, size: str) -> str:
        narrow = f"trunc {self.kind(vector)} {bits} to {self.kind(vector, size)}"
        return bits if size == self.own(vector) else self.set(narrow)

    def widened(self, how: str, bits: str, size: str, vector: bool) -> _Value:
        wide = f"{how} {self.kind(vector, size)} {bits} to {self.kind(vector)}"
        return _Value(bits if size == self.own(vector) else self.set(wide), vector)

    def called(self, name: str, nodes: list[Any]) -> _Value:
        if name[:4] == "pick":
            return self.picked(str(8 * int(name[4:])), self.value(nodes[0]), nodes[1])
        values = [self.value(node) for node in nodes]
        if name[:2] in ("ld", "st") and name[2:] in ("1", "2", "4", "8"):
            return self.memory(name, str(8 * int(name[2:])), values)
        if name in _BINARY:
            return self.binary(_BINARY[name], *values)
        if name in self.functions or name == "call":
            if self.width:
                raise Untranslatable(name)
            texts = [value.text for value in values]
            function = f"@{name}" if name != "call" else self.pointer(texts.pop(0))
            return _Value(self.set(f"call i64 {function}({', '.join(f'i64 {text}' for text in texts)})"))
        if name == "either":
            kind, function = self.kind(True), f"llvm.vector.reduce.or.v{self.width}i64"
            self.declared[function] = f"declare i64 @{function}({kind})"
            return _Value(self.set(f"call i64 @{function}({kind} {self.all(values[0])})"))
        texts, vector = self.alike(values)
        if name in ("sx8", "sx16", "sx32"):
            return self.widened("sext", self.narrowed(texts[0], vector, name[2:]), name[2:], vector)
        if name in ("umulh", "smulh"):
            kind, wide = self.kind(vector), self.kind(vector, "128")
            a, b = (self.set(f"{'zext' if name == 'umulh' else 'sext'} {kind} {v} to {wide}") for v in texts)
            by = "splat (i128 64)" if vector else "64"
            high = self.set(f"lshr {wide} {self.set(f'mul {wide} {a}, {b}')}, {by}")
            return _Value(self.set(f"trunc {wide} {high} to {kind}"), vector)
        if name in ("ctz", "clz", "popc"):
            function = {"ctz": "cttz", "clz": "ctlz", "popc": "ctpop"}[name]
            more = "" if name == "popc" else "i1 false"
            return _Value(self.intrinsic(function, vector, self.own(vector), "i", texts, more), vector)
        if name[:1] == "f" and name[1:3] in _FLOATS:
            return self.on_floats(name[3:], name[1:3], texts, vector)
        raise Untranslatable(name)

    def on_floats(self, name: str, size: str, values: list[str], vector: bool) -> _Value:
        kind = self.kind(vector, size, "f")
        if name == "flush" and size == "32":  # subnormal: a zero of its sign
            given, word = self.narrowed(values[0], vector, size), self.kind(vector, size)
            masks = [f"splat (i32 {m})" if vector else f"{m}" for m in (0x7F800000, 0x80000000)]
            exponent, zero = (self.set(f"and {word} {given}, {mask}") for mask in masks)
            small = self.set(f"icmp eq {word} {exponent}, {'zeroinitializer' if vector else '0'}")
            choice = f"select {self.kind(vector, '1')} {small}, {word} {zero}, {word} {given}"
            return self.widened("zext", self.set(choice), size, vector)
        if name in _FLOAT_BINARY:
            a, b = (self.float(v, vector, size) for v in values)
            return self.bits(self.set(f"{_FLOAT_BINARY[name]} {kind} {a}, {b}"), vector, size)
        if name in _FLOAT_FUNCTIONS:
            numbers = [self.float(v, vector, size) for v in values]
            return self.bits(self.intrinsic(name, vector, size, "f", numbers), vector, size)
        if name in ("of_signed", "of_unsigned"):
            convert = "sitofp" if name == "of_signed" else "uitofp"
            return self.bits(self.set(f"{convert} {self.kind(vector)} {values[0]} to {kind}"), vector, size)
        if name in ("to_signed", "to_unsigned"):
            convert = "fptosi" if name == "to_signed" else "fptoui"
            number = self.float(values[0], vector, size)
            return _Value(self.set(f"{convert} {kind} {number} to {self.kind(vector)}"), vector)
        if name == "from_other":
            other, convert = ("64", "fptrunc") if size == "32" else ("32", "fpext")
            number = self.float(values[0], vector, other)
            return self.bits(self.set(f"{convert} {self.kind(vector, other, 'f')} {number} to {kind}"), vector, size)
        raise Untranslatable(name)

    # -- memory --------------------------------------------------------------------------------------------------------

    def pointer(self, address: str) -> str:
        return self.set(f"inttoptr i64 {address} to ptr")

    def memory(self, name: str, size: str, values: list[_Value]) -> _Value:
        place, step = values[0], int(size) // 8
        one = not (place.vector or place.step)
        vector = not one
        together = one or (not place.vector and place.step == step)
        kind = self.kind(vector, size)
        if name[:2] == "st":
            if self.inside or (one and (values[1].vector or values[1].step)):
                raise Untranslatable("a store by some lanes, or of many values to one place")
            value = self.narrowed(self.all(values[1]) if vector else values[1].text, vector, size)
            if together:
                self.line(f"store {kind} {value}, ptr {self.pointer(place.text)}, align 1")
            else:  # of lanes with one place, the last one's value stays
                self.line(self.apart(place, size, value))
            return _Value("0")
        address = f"load {kind}, ptr {self.pointer(place.text)}, align 1" if together else self.apart(place, size)
        return self.widened("zext", self.set(address), size, vector)

    def picked(self, size: str, place: _Value, number: Any) -> _Value:
        """Return items behind a place, whose numbers follow from those of the lanes."""
        code = compile(ast.Expression(number), "<pick>", "eval")
        numbers = [eval(code, {"__builtins__": {}, self.lane: k}) for k in range(self.width)]
        whole = f"<{max(numbers) + 1} x i{size}>"
        data = self.set(f"load {whole}, ptr {self.pointer(place.text)}, align 1")
        mask = f"<{self.width} x i32> <{', '.join(f'i32 {k}' for k in numbers)}>"
        return self.widened("zext", self.set(f"shufflevector {whole} {data}, {whole} poison, {mask}"), size, True)

    def apart(self, place: _Value, size: str, value: str = "") -> str:
        """Return the call that loads from places of any kind, or stores a value there."""
        numbers, pointers, bit = self.kind(True, size), f"<{self.width} x ptr>", self.kind(True, "1")
        places = self.set(f"inttoptr {self.kind(True)} {self.all(place)} to {pointers}")
        every = [(pointers, places), ("i32", "1"), (bit, "splat (i1 true)")]
        arguments = [(numbers, value), *every] if value else [*every, (numbers, "poison")]
        name = f"llvm.masked.{'scatter' if value else 'gather'}.v{self.width}i{size}.v{self.width}p0"
        result = "void" if value else numbers
        self.declared[name] = f"declare {result} @{name}({', '.join(kind for kind, _ in arguments)})"
        return f"call {result} @{name}({', '.join(f'{kind} {text}' for kind, text in arguments)})"

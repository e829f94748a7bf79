"""Compiles functions on 64-bit integers to machine code of this processor, with the LLVM that Numba brings (llvmlite).

Source is a small part of Python: `def`, assignments, `if`, `while`, `for … in range(n)`, `return` (else 0), integers.
`for i in lanes(32)` runs its body for 32 numbers at once, in vectors (`_Lanes`).
All values are 64 bits wide and wrap; `>>` shifts zeros in, `<` compares as signed. `ld1` … `ld8` and `st1` … `st8` read
and write memory at an address, `call(address, …)` calls another function, `f32add(a, b)` takes the bits of floats,
`f32flush(a)` makes a subnormal number a zero.
A function takes tens of milliseconds to compile.
"""

import ast
import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
_TESTS = {"ult": "icmp ult i64", "ule": "icmp ule i64"}
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


class Compiled:
    """Machine code. `address(name)` of a function in it, valid as long as this object lives."""

    def __init__(self, source: str, constants: Mapping[str, int]) -> None:
        import llvmlite.binding as llvm

        machine, linker = _compiler()
        module = llvm.parse_assembly(to_llvm(source, constants))
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()  # all further passes take longer than they gain
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1)))
        library = llvm.JITLibraryBuilder().add_object_img(machine.emit_object(module)).add_current_process()
        for function in module.functions:
            if not function.is_declaration:
                library.export_symbol(function.name)
        self._code = library.link(linker, f"warplab{next(_numbers)}")

    def address(self, name: str) -> int:
        return self._code[name]


def to_llvm(source: str, constants: Mapping[str, int]) -> str:
    """Return LLVM's assembly for functions in `source`. `constants`: names that stand for numbers."""
    tree = ast.parse(source)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    declared: dict[str, str] = {}
    texts = [_Function(node, constants, functions, declared).text() for node in tree.body]
    return "\n".join([*texts, *declared.values()])


class _Function:
    def __init__(self, node: Any, constants: Mapping[str, int], functions: set[str], declared: dict[str, str]) -> None:
        self.node, self.constants, self.functions, self.declared = node, constants, functions, declared
        self.lines: list[str] = []
        self.variables: dict[str, None] = {}
        self.number = 0
        self.closed = False  # has the present LLVM block its last instruction?

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

    def fresh(self) -> str:
        self.number += 1
        return f"%t{self.number}"

    def line(self, text: str) -> None:
        if not self.closed:
            self.lines.append(f"  {text}")
            self.closed = text.startswith(("br ", "ret "))

    def set(self, text: str) -> str:
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def label(self, name: str) -> None:
        self.line(f"br label %{name}")
        self.start(name)

    def start(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.closed = False

    def labels(self, *names: str) -> list[str]:
        self.number += 1
        return [f"{name}{self.number}" for name in names]

    def store(self, name: str, value: str) -> None:
        self.variables[name] = None
        self.line(f"store i64 {value}, ptr %v.{name}")

    # -- statements ----------------------------------------------------------------------------------------------------

    def body(self, statements: list[Any]) -> None:
        for statement in statements:
            method = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if method is None:
                raise Untranslatable(ast.unparse(statement))
            method(statement)

    def _expr(self, node: Any) -> None:
        self.value(node.value)

    def _assign(self, node: Any) -> None:
        self.store(node.targets[0].id, self.value(node.value))

    def _return(self, node: Any) -> None:
        self.line(f"ret i64 {self.value(node.value)}")

    def _if(self, node: Any) -> None:
        yes, no, end = self.labels("yes", "no", "end")
        self.condition(node.test, yes, no)
        for name, statements in ((yes, node.body), (no, node.orelse)):
            self.start(name)
            self.body(statements)
            self.line(f"br label %{end}")
        self.start(end)

    def _while(self, node: Any) -> None:
        again, inside, end = self.labels("again", "inside", "end")
        self.label(again)
        self.condition(node.test, inside, end)
        self.start(inside)
        self.body(node.body)
        self.line(f"br label %{again}")
        self.start(end)

    def _for(self, node: Any) -> None:
        """Write `for i in range(n)`: the variable is counted before the body may change it."""
        if node.iter.func.id == "lanes":
            return _Lanes(self, node.target.id).body(node.body)
        again, inside, end = self.labels("again", "inside", "end")
        counter = f"{node.target.id}.{again}"
        self.store(counter, "0")
        last = self.value(node.iter.args[0])
        self.label(again)
        now = self.set(f"load i64, ptr %v.{counter}")
        self.line(f"br i1 {self.set(f'icmp slt i64 {now}, {last}')}, label %{inside}, label %{end}")
        self.start(inside)
        self.store(node.target.id, now)
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
        bit = self.test(node)
        if bit is None:
            bit = self.set(f"icmp ne i64 {self.value(node)}, 0")
        return self.line(f"br i1 {bit}, label %{yes}, label %{no}")

    def test(self, node: Any) -> str | None:
        """Return one bit for a comparison; None for anything else."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            a, b = self.value(node.left), self.value(node.comparators[0])
            return self.set(f"icmp {_COMPARE[type(node.ops[0])]} i64 {a}, {b}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name in _TESTS:
                a, b = (self.value(x) for x in node.args)
                return self.set(f"{_TESTS[name]} {a}, {b}")
            if name[:1] == "f" and name[1:3] in _FLOATS and name[3:] in _FLOAT_TESTS:
                a, b = (self.float(self.value(x), name[1:3]) for x in node.args)
                return self.set(f"fcmp {_FLOAT_TESTS[name[3:]]} {_FLOATS[name[1:3]]} {a}, {b}")
        return None

    # -- values --------------------------------------------------------------------------------------------------------

    def value(self, node: Any) -> str:
        if isinstance(node, ast.Constant):
            number = int(str(node.value)) & 0xFFFFFFFFFFFFFFFF
            return str(number - (number >> 63 << 64))
        if isinstance(node, ast.Name):
            if node.id in self.constants:
                return str(self.constants[node.id])
            if node.id not in self.variables:
                raise Untranslatable(f"unknown name {node.id}")
            return self.set(f"load i64, ptr %v.{node.id}")
        if isinstance(node, ast.BinOp):
            a, b = self.value(node.left), self.value(node.right)
            return self.set(f"{_ARITHMETIC[type(node.op)]} i64 {a}, {b}")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.set(f"sub i64 0, {self.value(node.operand)}")
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return self.set(f"xor i64 -1, {self.value(node.operand)}")
        if isinstance(node, ast.IfExp):
            return self.choice(node)
        bit = self.test(node)
        if bit is not None:
            return self.set(f"zext i1 {bit} to i64")
        if isinstance(node, ast.BoolOp):
            return self.choice(ast.IfExp(node, ast.Constant(1), ast.Constant(0)))
        if isinstance(node, ast.Call):
            return self.called(node)
        raise Untranslatable(ast.unparse(node))

    def choice(self, node: ast.IfExp) -> str:
        yes, no, end = self.labels("yes", "no", "end")
        self.condition(node.test, yes, no)
        name = f"choice.{end}"
        for label, side in ((yes, node.body), (no, node.orelse)):
            self.start(label)
            self.store(name, self.value(side))
            self.line(f"br label %{end}")
        self.start(end)
        return self.set(f"load i64, ptr %v.{name}")

    def float(self, bits: str, size: str) -> str:
        if size == "64":
            return self.set(f"bitcast i64 {bits} to double")
        return self.set(f"bitcast i32 {self.set(f'trunc i64 {bits} to i32')} to float")

    def bits(self, number: str, size: str) -> str:
        if size == "64":
            return self.set(f"bitcast double {number} to i64")
        return self.set(f"zext i32 {self.set(f'bitcast float {number} to i32')} to i64")

    def pointer(self, address: str) -> str:
        return self.set(f"inttoptr i64 {address} to ptr")

    def declare(self, name: str, result: str, arguments: str) -> None:
        self.declared[name] = f"declare {result} @{name}({arguments})"

    def called(self, node: ast.Call) -> str:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        values = [self.value(a) for a in node.args]
        if name in self.functions:
            return self.set(f"call i64 @{name}({', '.join(f'i64 {v}' for v in values)})")
        if name == "call":
            arguments = ", ".join(f"i64 {v}" for v in values[1:])
            return self.set(f"call i64 {self.pointer(values[0])}({arguments})")
        if name[:2] in ("ld", "st") and name[2:] in ("1", "2", "4", "8"):
            kind, pointer = f"i{8 * int(name[2:])}", self.pointer(values[0])
            if name[:2] == "ld":
                value = self.set(f"load {kind}, ptr {pointer}, align 1")
                return value if kind == "i64" else self.set(f"zext {kind} {value} to i64")
            small = values[1] if kind == "i64" else self.set(f"trunc i64 {values[1]} to {kind}")
            self.line(f"store {kind} {small}, ptr {pointer}, align 1")
            return "0"
        if name in ("sx8", "sx16", "sx32"):
            small = self.set(f"trunc i64 {values[0]} to i{name[2:]}")
            return self.set(f"sext i{name[2:]} {small} to i64")
        if name in _BINARY:
            return self.set(f"{_BINARY[name]} i64 {values[0]}, {values[1]}")
        if name in ("umulh", "smulh"):
            extend = "zext" if name == "umulh" else "sext"
            a, b = (self.set(f"{extend} i64 {v} to i128") for v in values)
            high = self.set(f"lshr i128 {self.set(f'mul i128 {a}, {b}')}, 64")
            return self.set(f"trunc i128 {high} to i64")
        if name in ("ctz", "clz", "popc"):
            function = {"ctz": "llvm.cttz.i64", "clz": "llvm.ctlz.i64", "popc": "llvm.ctpop.i64"}[name]
            more = "" if name == "popc" else ", i1 false"
            self.declare(function, "i64", "i64" if name == "popc" else "i64, i1")
            return self.set(f"call i64 @{function}(i64 {values[0]}{more})")
        if name[:1] == "f" and name[1:3] in _FLOATS:
            return self.on_floats(name[3:], name[1:3], values)
        raise Untranslatable(name)

    def on_floats(self, name: str, size: str, values: list[str]) -> str:
        kind = _FLOATS[size]
        if name == "flush" and size == "32":  # subnormal: a zero of its sign
            exponent = self.set(f"and i64 {values[0]}, {0x7F800000}")
            sign = self.set(f"and i64 {values[0]}, {0x80000000}")
            return self.set(f"select i1 {self.set(f'icmp eq i64 {exponent}, 0')}, i64 {sign}, i64 {values[0]}")
        if name in _FLOAT_BINARY:
            a, b = (self.float(v, size) for v in values)
            return self.bits(self.set(f"{_FLOAT_BINARY[name]} {kind} {a}, {b}"), size)
        if name in _FLOAT_FUNCTIONS:
            function = f"llvm.{name}.f{size}"
            self.declare(function, kind, ", ".join([kind] * _FLOAT_FUNCTIONS[name]))
            numbers = ", ".join(f"{kind} {self.float(v, size)}" for v in values)
            return self.bits(self.set(f"call {kind} @{function}({numbers})"), size)
        if name in ("of_signed", "of_unsigned"):
            convert = "sitofp" if name == "of_signed" else "uitofp"
            return self.bits(self.set(f"{convert} i64 {values[0]} to {kind}"), size)
        if name in ("to_signed", "to_unsigned"):
            convert = "fptosi" if name == "to_signed" else "fptoui"
            return self.set(f"{convert} {kind} {self.float(values[0], size)} to i64")
        if name == "from_other":
            if size == "32":
                return self.bits(self.set(f"fptrunc double {self.float(values[0], '64')} to float"), "32")
            return self.bits(self.set(f"fpext float {self.float(values[0], '32')} to double"), "64")
        raise Untranslatable(name)


_WIDTH = 32
_VECTOR = f"<{_WIDTH} x i64>"
_EVERY = f"<{_WIDTH} x i1> splat (i1 true)"


@dataclass(frozen=True)
class _Value:
    """A value for all lanes: the same for each, or with `step` more from lane to lane, if not `vector`."""

    text: str
    vector: bool = False
    step: int = 0


class _Lanes:
    """Writes the body of a loop over lanes, in vectors of 64-bit integers. Both sides of a condition are computed, and
    one of them is taken, lane by lane; so a condition may not hold a store. `either(x)`: the bits that any lane has.
    Variables that are the same for each lane keep their values behind the loop.
    """

    def __init__(self, outer: _Function, lane: str) -> None:
        self.outer = outer
        self.names: dict[str, _Value] = {lane: _Value("0", step=1)}
        self.inside = 0  # of how many conditions

    def set(self, text: str) -> str:
        return self.outer.set(text)

    def vector(self, value: _Value) -> str:
        if value.vector:
            return value.text
        one = self.set(f"insertelement {_VECTOR} poison, i64 {value.text}, i32 0")
        every = self.set(f"shufflevector {_VECTOR} {one}, {_VECTOR} poison, <{_WIDTH} x i32> zeroinitializer")
        if not value.step:
            return every
        steps = ", ".join(f"i64 {k * value.step}" for k in range(_WIDTH))
        return self.set(f"add {_VECTOR} {every}, <{steps}>")

    # -- statements ------------------------------------------------------------------------------------------------

    def body(self, statements: list[Any]) -> None:
        for node in statements:
            if isinstance(node, ast.Assign):
                assert isinstance(node.targets[0], ast.Name)
                self.assign(node.targets[0].id, self.value(node.value))
            elif isinstance(node, ast.If):
                self.condition(node)
            elif isinstance(node, ast.Expr):
                self.value(node.value)
            else:
                raise Untranslatable(ast.unparse(node))

    def assign(self, name: str, value: _Value) -> None:
        self.names[name] = value
        if not (value.vector or value.step or self.inside):
            self.outer.store(name, value.text)

    def condition(self, node: ast.If) -> None:
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

    # -- values ----------------------------------------------------------------------------------------------------

    def select(self, bits: str, yes: Any, no: Any) -> _Value:
        a, b = self.vector(yes), self.vector(no)
        return _Value(self.set(f"select <{_WIDTH} x i1> {bits}, {_VECTOR} {a}, {_VECTOR} {b}"), True)

    def test(self, node: Any) -> str:
        """Return one bit per lane."""
        if isinstance(node, ast.BoolOp):
            first, *rest = (self.test(part) for part in node.values)
            for bits in rest:
                first = self.set(f"{'or' if isinstance(node.op, ast.Or) else 'and'} <{_WIDTH} x i1> {first}, {bits}")
            return first
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            a, b = (self.vector(self.value(x)) for x in (node.left, node.comparators[0]))
            return self.set(f"icmp {_COMPARE[type(node.ops[0])]} {_VECTOR} {a}, {b}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name in _TESTS:
                a, b = (self.vector(self.value(x)) for x in node.args)
                return self.set(f"{_TESTS[name].replace('i64', _VECTOR)} {a}, {b}")
            if name[:1] == "f" and name[1:3] in _FLOATS and name[3:] in _FLOAT_TESTS:
                a, b = (self.float(self.vector(self.value(x)), name[1:3]) for x in node.args)
                return self.set(f"fcmp {_FLOAT_TESTS[name[3:]]} <{_WIDTH} x {_FLOATS[name[1:3]]}> {a}, {b}")
        return self.set(f"icmp ne {_VECTOR} {self.vector(self.value(node))}, zeroinitializer")

    def value(self, node: Any) -> _Value:
        if isinstance(node, ast.Name) and node.id in self.names:
            return self.names[node.id]
        if isinstance(node, ast.Constant | ast.Name):
            return _Value(self.outer.value(node))
        if isinstance(node, ast.BinOp):
            return self.binary(_ARITHMETIC[type(node.op)], self.value(node.left), self.value(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.binary("sub", _Value("0"), self.value(node.operand))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return self.binary("xor", _Value("-1"), self.value(node.operand))
        if isinstance(node, ast.IfExp):
            return self.select(self.test(node.test), self.value(node.body), self.value(node.orelse))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found = self.called(node.func.id, node.args)
            if found is not None:
                return found
        return _Value(self.set(f"zext <{_WIDTH} x i1> {self.test(node)} to {_VECTOR}"), True)

    def binary(self, operation: str, a: _Value, b: _Value) -> _Value:
        if not (a.vector or b.vector):
            step: int | None = None  # from lane to lane, if it is known
            if not (a.step or b.step):
                step = 0
            elif operation in ("add", "sub"):
                step = a.step + (b.step if operation == "add" else -b.step)
            elif operation == "mul" and not (a.step and b.step):
                factor = (b if a.step else a).text
                step = (a.step or b.step) * int(factor) if factor.isdigit() else None
            if step is not None:
                return _Value(self.set(f"{operation} i64 {a.text}, {b.text}"), step=step)
        x, y = self.vector(a), self.vector(b)
        if operation in ("udiv", "urem", "sdiv", "srem"):  # of a side that is not taken: by 1
            bad = self.set(f"icmp eq {_VECTOR} {y}, zeroinitializer")
            if operation[0] == "s":
                minus = self.set(f"icmp eq {_VECTOR} {y}, {self.vector(_Value('-1'))}")
                lowest = self.set(f"icmp eq {_VECTOR} {x}, {self.vector(_Value(str(-(1 << 63))))}")
                both = self.set(f"and <{_WIDTH} x i1> {minus}, {lowest}")
                bad = self.set(f"or <{_WIDTH} x i1> {bad}, {both}")
            y = self.select(bad, _Value("1"), _Value(y, True)).text
        return _Value(self.set(f"{operation} {_VECTOR} {x}, {y}"), True)

    def float(self, bits: str, size: str) -> str:
        if size == "32":
            bits = self.set(f"trunc {_VECTOR} {bits} to <{_WIDTH} x i32>")
        return self.set(f"bitcast <{_WIDTH} x i{size}> {bits} to <{_WIDTH} x {_FLOATS[size]}>")

    def bits(self, number: str, size: str) -> _Value:
        bits = self.set(f"bitcast <{_WIDTH} x {_FLOATS[size]}> {number} to <{_WIDTH} x i{size}>")
        return self.widened("zext", bits, size)

    def widened(self, how: str, bits: str, size: str) -> _Value:
        return _Value(bits if size == "64" else self.set(f"{how} <{_WIDTH} x i{size}> {bits} to {_VECTOR}"), True)

    def intrinsic(self, name: str, result: str, arguments: list[str]) -> str:
        kinds = ", ".join(argument.rpartition(" ")[0] for argument in arguments)
        self.outer.declare(name, result, kinds)
        return self.set(f"call {result} @{name}({', '.join(arguments)})")

    def called(self, name: str, nodes: list[Any]) -> _Value | None:
        """Return the value of a call; None for a test."""
        values = [self.value(node) for node in nodes]
        if name[:2] in ("ld", "st") and name[2:] in ("1", "2", "4", "8"):
            return self.memory(name, 8 * int(name[2:]), values)
        if name == "either":
            return _Value(
                self.intrinsic(f"llvm.vector.reduce.or.v{_WIDTH}i64", "i64", [f"{_VECTOR} {self.vector(values[0])}"])
            )
        if name in ("sx8", "sx16", "sx32"):
            size = name[2:]
            small = self.set(f"trunc {_VECTOR} {self.vector(values[0])} to <{_WIDTH} x i{size}>")
            return self.widened("sext", small, size)
        if name in _BINARY:
            return self.binary(_BINARY[name], *values)
        if name in ("ctz", "clz", "popc"):
            function = {"ctz": "cttz", "clz": "ctlz", "popc": "ctpop"}[name]
            more = [] if name == "popc" else ["i1 false"]
            arguments = [f"{_VECTOR} {self.vector(values[0])}", *more]
            return _Value(self.intrinsic(f"llvm.{function}.v{_WIDTH}i64", _VECTOR, arguments), True)
        if name[:1] == "f" and name[1:3] in _FLOATS and name[3:] not in _FLOAT_TESTS:
            return self.on_floats(name[3:], name[1:3], values)
        if name in _TESTS or (name[:1] == "f" and name[1:3] in _FLOATS):
            return None
        raise Untranslatable(name)

    def memory(self, name: str, bits: int, values: list[_Value]) -> _Value:
        place, small = values[0], f"<{_WIDTH} x i{bits}>"
        together = not place.vector and place.step == bits // 8
        if name[:2] == "st":
            one = not (place.vector or place.step)
            if self.inside or (one and (values[1].vector or values[1].step)):
                raise Untranslatable("a store by some lanes, or of many values to one place")
            kind, wide, value = (f"i{bits}", "i64", values[1].text) if one else (small, _VECTOR, self.vector(values[1]))
            value = value if bits == 64 else self.set(f"trunc {wide} {value} to {kind}")
            if one or together:
                self.outer.line(f"store {kind} {value}, ptr {self.outer.pointer(place.text)}, align 1")
            else:  # of lanes with one place, the last one's value stays
                self.apart("scatter", "void", [f"{small} {value}", *self.pointers(place), "i32 1", _EVERY], bits)
            return _Value("0")
        if not (place.vector or place.step):
            value = self.set(f"load i{bits}, ptr {self.outer.pointer(place.text)}, align 1")
            return _Value(value if bits == 64 else self.set(f"zext i{bits} {value} to i64"))
        if together:
            value = self.set(f"load {small}, ptr {self.outer.pointer(place.text)}, align 1")
            return self.widened("zext", value, str(bits))
        arguments = [*self.pointers(place), "i32 1", _EVERY, f"{small} poison"]
        return self.widened("zext", self.apart("gather", small, arguments, bits), str(bits))

    def pointers(self, place: _Value) -> list[str]:
        return [f"<{_WIDTH} x ptr> {self.set(f'inttoptr {_VECTOR} {self.vector(place)} to <{_WIDTH} x ptr>')}"]

    def apart(self, how: str, result: str, arguments: list[str], bits: int) -> str:
        """Write loads or stores at places of any kind."""
        name = f"llvm.masked.{how}.v{_WIDTH}i{bits}.v{_WIDTH}p0"
        every = f"<{_WIDTH} x i1>"
        vector, pointers = f"<{_WIDTH} x i{bits}>", f"<{_WIDTH} x ptr>"
        order = (pointers, "i32", every, vector) if how == "gather" else (vector, pointers, "i32", every)
        self.outer.declare(name, result, ", ".join(order))
        call = f"call {result} @{name}({', '.join(arguments)})"
        if result != "void":
            return self.set(call)
        self.outer.line(call)
        return ""

    def on_floats(self, name: str, size: str, values: list[_Value]) -> _Value:
        kind, vectors = f"<{_WIDTH} x {_FLOATS[size]}>", [self.vector(value) for value in values]
        if name == "flush" and size == "32":  # subnormal: a zero of its sign
            value = _Value(vectors[0], True)
            exponent = self.binary("and", value, _Value(str(0x7F800000)))
            small = self.set(f"icmp eq {_VECTOR} {exponent.text}, zeroinitializer")
            return self.select(small, self.binary("and", value, _Value(str(0x80000000))), value)
        if name in _FLOAT_BINARY:
            a, b = (self.float(v, size) for v in vectors)
            return self.bits(self.set(f"{_FLOAT_BINARY[name]} {kind} {a}, {b}"), size)
        if name in _FLOAT_FUNCTIONS:
            numbers = [f"{kind} {self.float(v, size)}" for v in vectors]
            return self.bits(self.intrinsic(f"llvm.{name}.v{_WIDTH}f{size}", kind, numbers), size)
        if name in ("of_signed", "of_unsigned"):
            convert = "sitofp" if name == "of_signed" else "uitofp"
            return self.bits(self.set(f"{convert} {_VECTOR} {vectors[0]} to {kind}"), size)
        if name in ("to_signed", "to_unsigned"):
            convert = "fptosi" if name == "to_signed" else "fptoui"
            return _Value(self.set(f"{convert} {kind} {self.float(vectors[0], size)} to {_VECTOR}"), True)
        if name == "from_other":
            other = "64" if size == "32" else "32"
            convert = "fptrunc" if size == "32" else "fpext"
            have = f"<{_WIDTH} x {_FLOATS[other]}>"
            return self.bits(self.set(f"{convert} {have} {self.float(vectors[0], other)} to {kind}"), size)
        raise Untranslatable(name)

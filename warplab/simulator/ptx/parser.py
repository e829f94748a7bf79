"""PTX text → `Program`. Follows the grammar of NVIDIA's "PTX ISA" as far as NVRTC and NVVM write it.

The text may come from anyone, such as a student who is graded. Whatever it is, reading it ends in a program of bounded
size or in an UnsupportedInstruction. No regular expression here takes more than one pass over the text.
"""

import ast
import math
import operator
import re
import struct
from collections.abc import Callable

from warplab.simulator.constants import WARP_SIZE
from warplab.simulator.errors import UnsupportedInstruction, refusing
from warplab.simulator.ptx.inlining import inline
from warplab.simulator.ptx.program import (
    NOWHERE,
    TYPE_BYTES,
    Address,
    Entry,
    Immediate,
    Indexed,
    Instruction,
    Negated,
    Operand,
    Param,
    Program,
    Register,
    Symbol,
    Variable,
    Vector,
    Where,
    items_of,
)

SPACES = ("shared", "local", "const", "global")
# The part of shared memory that the system reserves, and cooperative groups use. Here it is a variable of the kernels
# that ask where it begins.
RESERVED = "%reserved_smem"
RESERVED_BYTES = 1024
_RESERVED_STARTS = frozenset(f"%reserved_smem_offset_{which}" for which in ("begin", "0", "1"))

# Beyond what any GPU accepts or any compiler writes.
MAX_TEXT = 16 << 20  # characters
MAX_INSTRUCTIONS = 200_000  # of a function
MAX_REGISTERS = 1 << 18  # declared in a module
MAX_VARIABLE_BYTES = 1 << 40
MAX_ALIGNMENT = 1 << 12
MAX_PARAM_BYTES = 32_764  # of a kernel
MAX_SCOPES = 50  # nested
MAX_STATEMENT = 1 << 16  # characters of an instruction

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.S)
_LABEL = re.compile(r"\s*([$\w.]+)\s*:(?!:)")
_TARGETS = re.compile(r"\s*([$\w.]+)\s*:\s*\.branchtargets\b([^;]*);")
_LABELS = re.compile(r"(?:^|(?<=[;{}:]))[ \t]*+([$\w]++)[ \t]*+:(?!:)", re.M)
_LOC = re.compile(
    r"\s*\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)\s+(?P<column>\d+)"
    r"(?:[^\n]*?inlined_at[ \t]+(?P<place>\d+[ \t]+\d+[ \t]+\d+))?[^\n]*"
)
_FILE = re.compile(r'^[ \t]*\.file\s+(\d+)\s+"([^"]*)"', re.M)
_OCTAL = re.compile(r"(?:\\[23][0-7]{2})+")  # LLVM writes so the bytes of a name beyond ASCII
_OCTAL_LITERAL = re.compile(r"-?0[0-7]++U?", re.ASCII)
_SECTION = re.compile(r"\s*\.section\s+[^{;]*\{[^}]*\}")
_IDENTIFIER = r"[%$A-Za-z_][\w$.]*"
_NAME = re.compile(rf"{_IDENTIFIER}+", re.ASCII)
_WORD = re.compile(r"(?<![\w$%.])[%$A-Za-z_][\w$]*(?:\.[xyzwrgba]\b)?")
_COLOURS = ".r", ".g", ".b", ".a"  # other names of the parts of a vector
_ADDRESS = re.compile(rf"({_IDENTIFIER}+|\d\w*+)?\s*+(?:\+?\s*+(-?\w++))?$")
# Instructions become Python code, in which none of these characters can end a string or a line.
_INSTRUCTION = re.compile(r"[\w \t\n\r$%.,:|@!+\-<>\[\]{}()~*&^]*+", re.ASCII)
_APART = re.compile(r"^(\w+(?:\.[\w.:]+)?) (\.[a-z])")
_BEHIND_TYPES = frozenset(("ftz", "satfinite", "relu", "rn"))
_TYPE = re.compile(r"(?:[bsu]\d+|b?f\d+|tf32|e\dm\d)(?:x\d)?")
# A constant expression, but for comparisons, divisions and casts, which nobody writes.
_EXPRESSION = re.compile(r"[-~+]?+[\s(~+-]*+(?:(?:0[xX][\da-fA-F]++|\d++)U?[-+~*&^()<>\s]*+)++", re.ASCII)
_OPERATORS: dict[type, Callable] = {
    ast.Invert: operator.invert,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
    ast.LShift: lambda a, b: a << b % 64,
    ast.RShift: lambda a, b: a >> b % 64,
}
_ATTRIBUTE = re.compile(r"\.attribute\([^)]*\)\s*")
_VARIABLE = re.compile(
    r"(?P<qualifiers>(?:\.\w+\s+(?:\d+\s+)?)*)\.(?P<type>\w+)\s+(?P<name>[\w$%.]+)\s*"
    r"(?P<dims>(?:\[\s*+\d*+\s*+\])*+)\s*+(?:=\s*(?P<initial>.*))?$",
    re.S,
)


def load(ptx: str, sources: dict[str, str] | None = None) -> Program:
    """Parse PTX text. `sources` maps file names, as in the PTX's `.file`, to their text; used in reports.

    Raises UnsupportedInstruction, with the line of the PTX, for text that the parser cannot read. Unknown instructions
    are reported at launch.
    """
    if len(ptx) > MAX_TEXT:
        raise UnsupportedInstruction(f"the PTX has more than {MAX_TEXT:,} characters")
    parser = _Parser(ptx, dict(sources or {}))
    try:
        with refusing("cannot read this PTX"):
            return parser.run()
    except UnsupportedInstruction as error:
        error.what += f", at line {parser.text.count(chr(10), 0, parser.begun) + 1} of the PTX"
        error.args = (error.message(),)
        raise


class _Parser:
    def __init__(self, ptx: str, sources: dict[str, str]) -> None:
        # NVRTC ends its text with a NUL. A comment leaves its line breaks, so that lines keep their numbers.
        self.text = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), ptx.rstrip("\0"))
        self.at = self.begun = 0  # `begun`: where what is being read begins
        self.files = {int(i): file_name(name) for i, name in _FILE.findall(ptx)}
        self.places: dict[tuple[str, str, str], Where] = {}  # file, line and column of a .loc → the line it means
        self.program = Program(inline, sources=sources, text=self.text)
        self.registers = 0  # declared so far
        self._ends = _scopes(self.text)
        if RESERVED in self.text:
            reserved = Variable(RESERVED, "shared", RESERVED_BYTES, 16, None, dynamic=False)
            self.program.variables[RESERVED] = reserved

    def run(self) -> Program:
        while self._skip_space():
            if match := _SECTION.match(self.text, self.at):
                self.at = match.end()
            elif self._peek(r"\.(version|target|address_size|file)\b[^\n]*"):
                word, _, rest = self._take(r"\.(?:version|target|address_size|file)\b[^\n]*").partition(" ")
                if word in (".version", ".target"):
                    setattr(self.program, word[1:], rest.strip())
            elif self._peek(r"(?:\.\w+\s+)*\.(entry|func)\b"):
                self._function()
            else:
                self._module_variable()
        return self.program

    # -- text ----------------------------------------------------------------------------------------------

    def _skip_space(self) -> bool:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.at < len(self.text)

    def _peek(self, pattern: str) -> re.Match | None:
        return re.compile(pattern).match(self.text, self.at)

    def _take(self, pattern: str) -> str:
        self.begun = self.at
        match = self._peek(pattern)
        if match is None:
            line = self.text[self.at :].split("\n", 1)[0]
            raise UnsupportedInstruction(f"cannot read this PTX: {line.strip()[:120]!r}")
        self.at = match.end()
        return match.group(0)

    def _until(self, end: str) -> str:
        self.begun = self.at
        stop = self.text.find(end, self.at)
        if stop < 0:
            raise UnsupportedInstruction(
                f"PTX ends before the {end!r} that {self.text[self.at : self.at + 40]!r} needs"
            )
        part, self.at = self.text[self.at : stop], stop + len(end)
        return part.strip()

    # -- declarations --------------------------------------------------------------------------------------

    def _module_variable(self) -> None:
        statement = self._until(";")
        if any(f".{space}" in statement for space in SPACES):
            variable = self._variable(statement)
            self.program.variables[variable.name] = variable

    def _variable(self, statement: str) -> Variable:
        match = _VARIABLE.match(_ATTRIBUTE.sub("", statement))  # .managed: one memory for host and device
        words = match["qualifiers"].split() if match is not None else []
        space = next((word[1:] for word in words if word[1:] in SPACES), None)
        if match is None or space is None or match["type"] not in TYPE_BYTES:
            raise UnsupportedInstruction(f"cannot read this PTX declaration: {statement[:120]!r}")
        align = _alignment(words, TYPE_BYTES[match["type"]])
        dims = re.findall(r"\[\s*(\d*)\s*\]", match["dims"])
        count = 1
        for dim in dims:
            count *= int(dim or 0)
        size = count * TYPE_BYTES[match["type"]]
        if size > MAX_VARIABLE_BYTES:
            raise UnsupportedInstruction(f"variable {match['name'][:120]} has more than {MAX_VARIABLE_BYTES:,} bytes")
        initial: bytes | None = None
        pointers: tuple[tuple[int, str], ...] = ()
        if match["initial"] is not None:
            initial, pointers = self._initial(match["initial"], match["type"])
            if initial is not None and len(initial) > size:
                raise UnsupportedInstruction(f"variable {match['name'][:120]} is smaller than its initial value")
        return Variable(match["name"], space, size, align, initial, size == 0, pointers)

    @staticmethod
    def _initial(text: str, kind: str) -> tuple[bytes, tuple[tuple[int, str], ...]]:
        """Return the first bytes, and offset and symbol of the addresses among them, which are known only later."""
        width = TYPE_BYTES[kind]
        words = re.findall(r"[^\s{},]+", text)
        values = [_literal(word) for word in words]
        pointers = tuple(
            (k * width, word.removeprefix("generic(").rstrip(")"))
            for k, (word, value) in enumerate(zip(words, values, strict=True))
            if value is None
        )
        if kind.startswith("f"):
            data = struct.pack(f"<{len(values)}{'d' if width == 8 else 'f'}", *values)
        else:
            data = b"".join((int(v or 0) & (1 << 8 * width) - 1).to_bytes(width, "little") for v in values)
        return data, pointers

    def _function(self) -> None:
        head = self._take(r"(?:\.\w+\s+)*\.(entry|func)\b")
        is_entry = head.rstrip().endswith("entry")
        self._skip_space()
        returns = []
        if not is_entry and self.text[self.at] == "(":
            self.at += 1
            returns = self._params(self._until(")"))
            self._skip_space()
        entry = Entry(self._take(_IDENTIFIER), self.program, returns=returns)
        self._skip_space()
        if self.text[self.at] == "(":
            self.at += 1
            entry.params = self._params(self._until(")"))
            if sum(param.size for param in entry.params) > MAX_PARAM_BYTES:
                raise UnsupportedInstruction(f"{entry.name} takes more than {MAX_PARAM_BYTES:,} bytes of parameters")
        while self._skip_space() and self.text[self.at] not in "{;":
            directive = self._take(r"\.\w+[^\n{;]*")
            if match := re.match(r"\.(?:maxntid|reqntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", directive):
                x, y, z = (int(d or 1) for d in match.groups())
                entry.max_threads = x, y, z
            if match := re.match(r"\.reqnctapercluster\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", directive):
                x, y, z = (int(d or 1) for d in match.groups())
                entry.cluster = x, y, z
        is_body = self.text[self.at] == "{"
        self.at += 1
        if is_body:
            self._body(entry)
            (self.program.entries if is_entry else self.program.functions)[entry.name] = entry

    @staticmethod
    def _params(text: str) -> list[Param]:
        params, offset = [], 0
        for part in filter(None, (p.strip() for p in text.split(","))):
            words = part.split()
            kind = next(w[1:] for w in words[1:] if w[1:] in TYPE_BYTES)
            name, _, dims = words[-1].partition("[")
            size = TYPE_BYTES[kind] * (int(dims.rstrip("]")) if dims else 1)
            if not 0 <= size <= MAX_VARIABLE_BYTES:
                raise UnsupportedInstruction(f"cannot read this PTX parameter: {part[:120]!r}")
            align = _alignment(words, TYPE_BYTES[kind])
            offset = -(-offset // align) * align
            params.append(Param(name, kind, size, align, offset))
            offset += size
        return params

    # -- bodies --------------------------------------------------------------------------------------------

    def _body(self, entry: Entry) -> None:
        """Read a body. Registers, parameters and labels of a nested scope get their own names: `p` becomes `%p$3`."""
        scopes: list[tuple[dict[str, str], str]] = [({}, "")]  # new names, and their suffix
        opened, where = 0, NOWHERE
        targets: dict[str, tuple[str, ...]] = {}  # lists of labels for brx.idx
        while scopes:
            if not self._skip_space():
                raise UnsupportedInstruction(f"PTX of {entry.name} ends before its closing brace")
            char = self.text[self.at]
            names, suffix = scopes[-1]
            if char == "}":
                scopes.pop()
                self.at += 1
            elif char == "{":
                if len(scopes) > MAX_SCOPES:
                    raise UnsupportedInstruction(f"PTX of {entry.name} has more than {MAX_SCOPES} nested scopes")
                self.at += 1
                opened += 1
                scopes.append(({**names, **self._labels(f"${opened}")}, f"${opened}"))
            elif match := _LOC.match(self.text, self.at):
                self.at = match.end()
                if int(match["line"]):  # line 0 means "no line": keep the previous one
                    where = self._where(match)
            elif match := _TARGETS.match(self.text, self.at):
                self.at = match.end()
                labels = [label.strip() for label in match[2].split(",")]
                targets[names.get(match[1], match[1])] = tuple(names.get(label, label) for label in labels)
            elif match := _LABEL.match(self.text, self.at):
                self.at = match.end()
                entry.labels[names.get(match[1], match[1])] = len(entry.instructions)
            else:
                at, statement = self.at, self._until(";")
                if statement.startswith("."):
                    self._directive(entry, statement, names, suffix)
                elif statement:
                    self._instruction(entry, parse_instruction(statement, where, names, at), targets)

    def _where(self, loc: re.Match) -> Where:
        """Return the line that a .loc refers to: the calling line for code inlined from another file."""
        where = Where(self.files.get(int(loc["file"]), ""), int(loc["line"]))
        if loc["place"] is not None:
            caller = self.places.get(tuple(loc["place"].split()), where)
            where = where if where.file == caller.file else caller
        self.places[loc["file"], loc["line"], loc["column"]] = where
        return where

    def _labels(self, suffix: str) -> dict[str, str]:
        """Return new names for the labels of the scope that begins here, as a jump may precede its label."""
        return {name: name + suffix for name in _LABELS.findall(self.text, self.at, self._ends[self.at])}

    def _directive(self, entry: Entry, statement: str, names: dict[str, str], suffix: str) -> None:
        if statement.startswith(".reg"):
            # Inline asm: `.reg.b16 x, y`.
            kind, *declared = statement.removeprefix(".reg").replace(",", " ").replace(".", " .").split()
            parts: tuple[str, ...] = ("",)
            if kind in (".v2", ".v4"):
                parts, (kind, *declared) = tuple(f".{axis}" for axis in "xyzw"[: int(kind[2])]), declared
            for name in declared:
                stem, _, count = name.partition("<")
                number = int(count.rstrip(">")) if count else 1
                self.registers += abs(number) * len(parts)
                if self.registers > MAX_REGISTERS:
                    raise UnsupportedInstruction(f"the PTX declares more than {MAX_REGISTERS:,} registers")
                for register in [f"{stem}{i}" for i in range(number)] if count else [stem]:
                    new = f"{'' if register[0] == '%' else '%'}{register}{suffix}"
                    entry.registers.update(dict.fromkeys((new + part for part in parts), kind[1:]))
                    if len(parts) > 1:
                        names[register] = f"{{{', '.join(new + part for part in parts)}}}"
                        names.update(
                            (register + of, new + part) for k, part in enumerate(parts) for of in (part, _COLOURS[k])
                        )
                    elif new != register:
                        names[register] = new
        elif any(statement.startswith(f".{space}") for space in SPACES):
            variable = self._variable(statement)
            entry.variables[variable.name] = variable
        elif statement.startswith(".param"):
            (param,) = self._params(statement)
            names[param.name] = f"{param.name}{suffix}"
            entry.variables[names[param.name]] = Variable(
                names[param.name], "param", param.size, param.align, None, dynamic=False
            )

    @staticmethod
    def _instruction(entry: Entry, instruction: Instruction, targets: dict[str, tuple[str, ...]]) -> None:
        jumps: tuple[str, ...] = ()
        if instruction.opcode == "brx":
            name = instruction.operands[-1]
            if not isinstance(name, Symbol) or name.name not in targets:
                raise UnsupportedInstruction(f"cannot read this PTX: no .branchtargets before {instruction.text!r}")
            jumps = targets[name.name]
        if len(entry.instructions) + 2 * len(jumps) >= MAX_INSTRUCTIONS:
            raise UnsupportedInstruction(f"PTX of {entry.name} has more than {MAX_INSTRUCTIONS:,} instructions")
        if jumps:
            append_jumps(entry, instruction, jumps)
        else:
            entry.instructions.append(instruction)


def file_name(written: str) -> str:
    """Return the name that a `.file` directive means."""
    return _OCTAL.sub(
        lambda octal: bytes(int(byte, 8) for byte in octal[0][1:].split("\\")).decode("utf-8", "replace"), written
    )


def _scopes(text: str) -> dict[int, int]:
    """Return where each scope ends, by the position after its opening brace: the text's end if not closed."""
    ends, opened = {}, []
    for brace in re.finditer(r"[{}]", text):
        if brace[0] == "{":
            opened.append(brace.end())
        elif opened:
            ends[opened.pop()] = brace.end()
    return ends | dict.fromkeys(opened, len(text))


def _alignment(words: list[str], otherwise: int) -> int:
    align = int(words[words.index(".align") + 1]) if ".align" in words else otherwise
    if not 0 < align <= MAX_ALIGNMENT or align & (align - 1):
        raise UnsupportedInstruction(
            f"cannot read this PTX: .align {align} is not a power of two up to {MAX_ALIGNMENT:,}"
        )
    return align


def parse_instruction(
    statement: str, where: Where = NOWHERE, names: dict[str, str] | None = None, at: int = -1
) -> Instruction:
    """Parse one PTX instruction without its semicolon. `names`: new names for operands. `at`: where it stands."""
    if len(statement) > MAX_STATEMENT or _INSTRUCTION.fullmatch(statement) is None:
        raise UnsupportedInstruction(f"cannot read this PTX instruction: {statement[:120]!r}")
    text = " ".join(statement.split())
    guard, negated, rest = None, False, text
    if rest.startswith("@"):
        word, _, rest = rest.partition(" ")
        negated = word.startswith("@!")
        word = word.lstrip("@!")
        guard = Register(names.get(word, word) if names else word)
    rest = _APART.sub(r"\1\2", rest)  # CUTLASS writes spaces before types, and none before operands
    head = re.split(r"[ {\[]", rest, maxsplit=1)[0]
    tail = rest[len(head) :].lstrip()
    if names:
        tail = _WORD.sub(lambda match: names.get(match[0], match[0]), tail)
    opcode, *modifiers = _types_last(head.split("."))
    operands = tuple(_operand(part) for part in _split(tail))
    return Instruction(opcode, tuple(modifiers), operands, guard, negated, where, text, at)


def _types_last(words: list[str]) -> list[str]:
    """Put before the types what CUTLASS and cuRAND write behind them, as in `ex2.approx.f32.ftz`."""
    if words[-1] not in _BEHIND_TYPES:
        return words
    place = len(words) - 1
    while place > 1 and _TYPE.fullmatch(words[place - 1]):
        place -= 1
    return [*words[:place], words[-1], *words[place:-1]]


_CLOSING = {"[": "]", "{": "}", "(": ")"}


def _split(text: str) -> list[str]:
    """Split at the commas outside brackets; `p|q` (two destinations) splits too. Each part must be there, and each
    bracket closed by its own kind."""
    parts, wanted, begin = [], [], 0
    for at, char in enumerate(text):
        if char in _CLOSING:
            wanted.append(_CLOSING[char])
        elif char in "]})":
            if not wanted or wanted.pop() != char:
                raise UnsupportedInstruction(f"cannot read this PTX: {char!r} closes nothing in {text[:120]!r}")
        elif char in ",|" and not wanted:
            parts.append(text[begin:at].strip())
            begin = at + 1
    if wanted:
        raise UnsupportedInstruction(f"cannot read this PTX: {wanted[-1]!r} is missing in {text[:120]!r}")
    parts = [*parts, text[begin:].strip()] if begin or text.strip() else []
    if not all(parts):
        raise UnsupportedInstruction(f"cannot read this PTX: an operand is missing in {text[:120]!r}")
    return parts


def _inside(text: str) -> str:
    """Return what stands in the brackets that an operand begins with, which must be all of it."""
    if text[-1] != _CLOSING[text[0]]:
        raise UnsupportedInstruction(f"cannot read this PTX operand: {text[:120]!r}")
    return text[1:-1].strip()


def _operand(text: str, depth: int = 0) -> Operand:
    if depth > 2:
        raise UnsupportedInstruction(f"cannot read this PTX operand: {text[:120]!r}")
    if text.startswith("["):
        address, *coordinates = _split(_inside(text)) or [""]
        if not coordinates:
            return _address(address)
        if len(coordinates) > 1:  # an instruction with a sampler of its own is refused by name
            return Symbol(text)
        return Indexed(_address(address), items_of(_operand(coordinates[0], depth + 1)))
    if text.startswith(("{", "(")):
        parts = _split(_inside(text))
        if text[0] == "{" and (not parts or any(part[0] in _CLOSING for part in parts)):
            raise UnsupportedInstruction(f"cannot read this PTX operand: {text[:120]!r}")
        items = tuple(_operand(part, depth + 1) for part in parts)
        # A vector of one is its element: LLVM writes `ld.global.b32 { %r1 }, [%rd1];`. A list of arguments stays one.
        return items[0] if text[0] == "{" and len(items) == 1 else Vector(items)
    if text.startswith("!"):
        return Negated(Register(_name(text[1:].strip())))
    if text.startswith("%"):
        return Symbol(RESERVED) if text in _RESERVED_STARTS else Register(_name(text))
    value = _literal(text)
    return Symbol(_name(text)) if value is None else Immediate(value)


def _name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise UnsupportedInstruction(f"cannot read this PTX operand: {text[:120]!r}")
    return text


def _address(text: str) -> Address:
    match = _ADDRESS.match(text)
    if match is None:
        raise UnsupportedInstruction(f"cannot read this PTX address: [{text[:120]}]")
    base, distance = match.groups()
    offset = 0 if distance is None else _integer(distance)
    if base is None or base[0].isdigit():
        return Address(None, (_integer(base) if base else 0) + offset)
    return Address(Register(base) if base[0] == "%" else Symbol(base), offset)


def _integer(text: str) -> int:
    value = _literal(text)
    if not isinstance(value, int):
        raise ValueError(f"{text[:120]!r} is no integer")
    return value


def _literal(text: str) -> int | float | None:
    """Return the value of a PTX literal, None if the text is not one. `0f` and `0d` literals keep their exact bits."""
    if text == "WARP_SZ":
        return WARP_SIZE
    if text[:2] in ("0f", "0F") and len(text) == 10:
        return struct.unpack(">f", bytes.fromhex(text[2:]))[0]
    if text[:2] in ("0d", "0D") and len(text) == 18:
        return struct.unpack(">d", bytes.fromhex(text[2:]))[0]
    try:
        return int(text.rstrip("U"), 8 if _OCTAL_LITERAL.fullmatch(text) else 0)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return _expression(text)
    return value if math.isfinite(value) else None  # "nan" and "inf" are names


def _expression(text: str) -> int | None:
    """Return the value of a constant expression such as `~0` or `1<<4`, None if the text is not one."""

    def value(node: ast.expr) -> int:
        match node:
            case ast.UnaryOp():
                return _OPERATORS[type(node.op)](value(node.operand))
            case ast.BinOp():
                return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        return ast.literal_eval(node)

    if len(text) > 100 or _EXPRESSION.fullmatch(text) is None:
        return None
    try:
        return value(ast.parse(text.replace("U", ""), mode="eval").body)
    except (SyntaxError, KeyError, ValueError):
        return None


def append_jumps(entry: Entry, jump: Instruction, targets: tuple[str, ...]) -> None:
    """Append what replaces a `brx.idx` to the labels `targets`: comparisons and jumps, as compilers write today. A
    number out of range stops the kernel."""
    number = len(entry.instructions)
    chosen, after = Register(f"%chosen{number}"), f"$after{number}"
    entry.registers[chosen.name] = "pred"

    def add(opcode: str, modifiers=(), operands=(), guard=None, negated: bool = False) -> None:
        made = Instruction(opcode, modifiers, operands, guard, negated, jump.where, jump.text, jump.at)
        entry.instructions.append(made)

    if jump.guard is not None:
        add("bra", (), (Symbol(after),), jump.guard, not jump.guard_negated)
    for k, target in enumerate(targets):
        add("setp", ("eq", "u32"), (chosen, jump.operands[0], Immediate(k)))
        add("bra", (), (Symbol(target),), chosen)
    add("invalid", ("jump",))
    add("trap")
    entry.labels[after] = len(entry.instructions)

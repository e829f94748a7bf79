"""Random statements of a kernel: control flow, memory, and what threads of a warp or a block do together.

What needs all threads (barriers, votes, shuffles) stands only where all threads come by: at the top level and in loops
whose trip count is a kernel's argument. Atomic operations leave results that do not depend on their order: each word
of the array of accumulators has one commutative operation, and floating-point sums are of small integers.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.warplab.differential.choices import Choices
from tests.warplab.differential.expressions import C_TYPES, EDGES, FLOAT_CONSTANTS, INTEGERS, Expressions, bits

# Accumulators: unsigned words before the launch. One operation each.
ACCUMULATORS = [0, 7, 0xFFFFFFFF, 0, 0x12345678, 0xFFFFFFFF, 0, 0, 0x7FFFFFFF, 0x80000000, 1, 0]
ACCUMULATORS += [0, 0, 0, 0, 0, 0, 0xFFFFFFFF, 0xFFFFFFFF, 0, 0, 0, 0]
ATOMICS = (
    # The first load may read anything, the CAS tells. Code compiled with -G hides from the simulator that it is one.
    "{{ unsigned old = g[10], seen, factor = {u} | 1u;"
    " do {{ seen = old; old = atomicCAS(&g[10], seen, seen * factor); }} while (old != seen); }}",
    "atomicAdd(&g[{x} & 1u], {u});",
    "atomicAnd(&g[2], {u} | 0x11111111u);",
    "atomicOr(&g[3], {u} & 0x0f0f0f0fu);",
    "atomicXor(&g[4], {u});",
    "atomicMin(&g[5], {u});",
    "atomicMax(&g[6], {u});",
    "atomicInc(&g[7], 1000u);",
    "atomicMin((int *)&g[8], {s});",
    "atomicMax((int *)&g[9], {s});",
    "{{ unsigned old = *(volatile unsigned *)&g[10], seen, factor = {u} | 1u;"
    " do {{ seen = old; old = atomicCAS(&g[10], seen, seen * factor); }} while (old != seen); }}",
    "atomicAdd(&g[20], atomicAdd(&g[11], 1u));",  # the sum of all tickets
    "atomicAdd((u64 *)&g[12], {w});",
    "atomicAdd((float *)&g[14], (float)({u} & 63u));",
    "atomicSub(&g[15], {u});",
    "atomicAdd((double *)&g[16], (double)({s} & 0xffff));",
    "atomicMin((u64 *)&g[18], {w});",
    "atomicXor((u64 *)&g[22], {w});",
)
VECTORS = {
    "u32": ("uint4", "uint2"),
    "s32": ("int4", "int2"),
    "f32": ("float4", "float2"),
    "u64": ("ulonglong2",),
    "f64": ("double2",),
    "s16": ("short4", "short2"),
    "u16": ("ushort4",),
    "u8": ("uchar4", "uchar2"),
    "s8": ("char4",),
}


class Statements:
    """Writes the body of one kernel. `block`: threads of a thread block.

    `debug`: whether it will be compiled without optimisation.
    """

    def __init__(self, choices: Choices, expressions: Expressions, name: str, block: int, debug: bool) -> None:
        self.choices, self.expressions = choices, expressions
        self.name, self.block, self.debug = name, block, debug
        self.lines: list[str] = []
        self.globals: list[str] = []
        self.left = 0
        self.count = 0

    # -- small parts ---------------------------------------------------------------------------------------

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def write(self, text: str) -> None:
        self.lines.append(text)

    def expression(self, kind: str, depth: int = 3) -> str:
        return self.expressions.of(kind, depth)

    def target(self, kinds: tuple[str, ...] | None = None) -> tuple[str, str]:
        """A variable to assign to, and its type."""
        variables = self.expressions.variables
        kind = self.choices.one([k for k in (kinds or self.expressions.kinds) if variables[k]])
        return self.choices.one(variables[kind]), kind

    def declare(self, kind: str, value: str) -> str:
        name = self.fresh("v")
        self.write(f"{C_TYPES[kind]} {name} = {value};")
        self.expressions.variables[kind].append(name)
        return name

    def scoped(self, write: Callable[[], None]) -> None:
        """Variables that `write` declares are known to it alone."""
        variables = self.expressions.variables
        before = {kind: list(names) for kind, names in variables.items()}
        write()
        variables.update(before)

    # -- the body ------------------------------------------------------------------------------------------

    def some(self, number: int, weights: dict[str, int], depth: int, uniform: bool) -> None:
        """About `number` statements, nested at most `depth` deep; `uniform`: all threads execute them."""
        allowed = {k: n for k, n in weights.items() if (uniform or k in LOCAL) and (depth or k not in NESTED)}
        for _ in range(number):
            if self.left <= 0:
                return
            self.left -= 1
            kind = self.choices.weighted(allowed)
            getattr(self, kind)(*((weights, depth, uniform) if kind in NESTED else ()))

    def nested(self, weights: dict[str, int], depth: int, uniform: bool = False) -> None:
        self.scoped(lambda: self.some(1 + self.choices.below(3), weights, depth - 1, uniform))

    def assign(self) -> None:
        name, kind = self.target()
        self.write(f"{name} = {self.expression(kind)};")

    def new_variable(self) -> None:
        kind = self.choices.one(self.expressions.kinds)
        self.declare(kind, self.expression(kind))

    def branch(self, weights, depth, uniform) -> None:
        self.write(f"if ({self.expressions.boolean(2)}) {{")
        self.nested(weights, depth)
        if self.choices.happens(60):
            self.write("} else {")
            self.nested(weights, depth)
        self.write("}")

    def switch(self, weights, depth, uniform) -> None:
        cases = 3 + self.choices.below(6)
        self.write(f"switch ({self.expression('u32', 2)} % {cases + 1}u) {{")
        for case in range(cases):
            self.write(f"case {case}: {{" if case or self.choices.happens(70) else f"default: case {case}: {{")
            self.nested(weights, depth)
            self.write("}" if self.choices.happens(20) else "} break;")
        self.write("}")

    def loop(self, weights, depth, uniform) -> None:
        """A loop whose trip count depends on the thread's data."""
        counter, form = self.fresh("k"), self.choices.below(3)
        count, most = self.expression("u32", 2), 4 + self.choices.below(9)
        if form == 0:
            self.write(f"for (unsigned {counter} = 0, end = {count} % {most}u; {counter} < end; ++{counter}) {{")
        else:
            limit = self.fresh("n")
            self.write(f"unsigned {limit} = {count} % {most}u, {counter} = 0;")
            self.write(f"while ({counter} < {limit} && {self.expressions.boolean(1)}) {{" if form == 1 else "do {")
            self.write(f"++{counter};")

        def body() -> None:
            self.some(1 + self.choices.below(2), weights, depth - 1, False)
            if self.choices.happens(35):
                self.write(f"if ({self.expressions.boolean(1)}) {self.choices.one(('break', 'continue'))};")
                self.some(1, weights, depth - 1, False)

        self.scoped(body)
        self.write("}" if form < 2 else f"}} while ({counter} < {limit});")

    def uniform_loop(self, weights, depth, uniform) -> None:
        """A loop that all threads go through equally often."""
        counter = self.fresh("k")
        count = self.choices.one(("trips", "trips + 1", "3", "2"))
        self.write(f"for (unsigned {counter} = 0; {counter} < {count}; ++{counter}) {{")
        self.nested(weights, depth, uniform)
        self.write("}")

    def collatz(self) -> None:
        name, _ = self.target(("u32",))
        n, k = self.fresh("n"), self.fresh("k")
        self.write(f"unsigned {n} = {name} & 0xffffu, {k} = 0;")
        self.write(f"while ({n} > 1u && {k} < 40u) {{ {n} = {n} & 1u ? 3u * {n} + 1u : {n} >> 1; ++{k}; }}")
        self.write(f"{name} = {name} * 31u + {k};")

    # -- memory --------------------------------------------------------------------------------------------

    def vector(self) -> None:
        """Load a vector of the inputs, at an index of the thread or of its data."""
        kind = self.choices.one([k for k in VECTORS if k in self.expressions.kinds])
        vector = self.choices.one(VECTORS[kind])
        source = {"f32": "in_f", "u64": "in_w", "f64": "in_d"}.get(kind, "in_u")
        items = int(vector[-1])
        words = items * bits(kind) // (64 if kind in ("u64", "f64") else 32)
        index = self.choices.one(("i", f"({self.expression('u32', 2)} % n)"))
        name = self.fresh("x")
        self.write(f"const {vector} {name} = ((const {vector} *){source})[{index}{' * 2' if words == 1 else ''}];")
        for field in "xyzw"[:items]:
            self.expressions.variables[kind].append(f"{name}.{field}")
        names = self.expressions.variables[kind]
        first = next(v for v in names if not v.startswith("x"))
        self.write(f"{first} = {self.expression(kind, 2)};")
        del names[-items:]

    def local_array(self) -> None:
        """An array of the thread, read and written at indices that depend on data."""
        name, kind = self.target()
        size = self.choices.one((4, 8, 16))
        array, k = self.fresh("a"), self.fresh("k")
        self.write(f"{C_TYPES[kind]} {array}[{size}];")
        other = self.expression(kind, 1)
        self.write(
            f"for (unsigned {k} = 0; {k} < {size}u; ++{k}) {array}[{k}] = ({k} + {self.expression('u32', 1)}) & 1u "
            f"? {name} : {other};"
        )
        for _ in range(2):
            self.write(f"{array}[{self.expression('u32', 2)} % {size}u] = {self.expression(kind, 2)};")
        self.write(f"{name} = {array}[{self.expression('u32', 2)} % {size}u];")

    def constant_table(self) -> None:
        kind = self.choices.one(
            [k for k in ("u32", "s16", "u8", "f32", "f64") if k in self.expressions.kinds] or ["u32"]
        )
        name = f"{self.name}_{self.fresh('table')}"
        if kind in INTEGERS:
            values = [f"({C_TYPES[kind]}){self.choices.one(EDGES[bits(kind)]):#x}u" for _ in range(8)]
        else:
            values = [self.choices.one(FLOAT_CONSTANTS) + ("f" if kind == "f32" else "") for _ in range(8)]
        space = self.choices.one(("__constant__", "__device__ const"))
        self.globals.append(f"{space} {C_TYPES[kind]} {name}[8] = {{{', '.join(values)}}};")
        self.declare(kind, f"{name}[{self.expression('u32', 2)} & 7u]")

    def atomic(self) -> None:
        e = self.expression
        self.write(
            self.choices.one(ATOMICS[1:] if self.debug else ATOMICS).format(
                x=e("u32", 1), u=e("u32", 2), s=e("s32", 2), w=e("u64", 2)
            )
        )

    # -- a warp --------------------------------------------------------------------------------------------

    def warp(self) -> None:
        if self.block % 32:
            return self.vote()
        name, kind = self.target(tuple(k for k in self.expressions.kinds if k in SHUFFLED))
        form = self.choices.below(6)
        width = self.choices.one((32, 32, 16, 8, 4, 2))
        step = self.choices.below(width)
        value = self.expression(kind, 2)
        if form < 4:
            how = ("", "_up", "_down", "_xor")[form]
            lane = self.expression("s32", 2) if form == 0 else str(step)
            self.write(f"{name} = __shfl{how}_sync(0xffffffffu, {value}, {lane}, {width});")
        elif form == 4:  # inclusive scan
            o, x = self.fresh("o"), self.fresh("y")
            sum_ = f"{name} + {x}" if kind[0] in "fu" else f"({C_TYPES[kind]})((u64){name} + (u64){x})"
            self.write(f"for (unsigned {o} = 1; {o} < 32u; {o} *= 2u) {{")
            self.write(f"{C_TYPES[kind]} {x} = __shfl_up_sync(0xffffffffu, {name}, {o});")
            self.write(f"if (lane >= {o}) {name} = {sum_};")
            self.write("}")
        else:  # the threads of one side of a branch, among themselves
            mask, flag = self.fresh("m"), self.fresh("p")
            self.write(f"bool {flag} = {self.expressions.boolean(2)};")
            self.write(f"unsigned {mask} = __ballot_sync(0xffffffffu, {flag});")
            first = self.choices.one((f"__ffs({mask}) - 1", f"31 - __clz({mask})"))
            self.write(f"if ({flag}) {name} = __shfl_sync({mask}, {name}, {first});")
        return None

    def vote(self) -> None:
        name, _ = self.target(("u32",))
        u, s, p = self.expression("u32", 2), self.expression("s32", 2), self.expressions.boolean(2)
        few = f"({u} & 3u)"
        forms = [
            f"__ballot_sync(warp_mask, {p})",
            f"(unsigned)__any_sync(warp_mask, {p}) + 2u * (unsigned)__all_sync(warp_mask, {p})",
            f"__popc(__ballot_sync(warp_mask, {p}) & ((1u << lane) - 1u))",
            f"(unsigned)__shfl_sync(warp_mask, {s}, (int)({u} % warp_lanes))",
            f"__match_any_sync(warp_mask, {few})",
            f"__match_any_sync(warp_mask, (u64){few} << 33)",
        ]
        if self.expressions.arch >= 80:
            forms += [f"__reduce_{o}_sync(warp_mask, {u})" for o in ("add", "min", "max", "and", "or", "xor")]
            forms += [f"(unsigned)__reduce_{o}_sync(warp_mask, {s})" for o in ("add", "min", "max")]
        self.write(f"{name} ^= {self.choices.one(forms)};")
        if self.choices.happens(20):
            all_ = self.fresh("q")
            self.write(f"int {all_}; {name} += __match_all_sync(warp_mask, {few}, &{all_}); {name} += {all_};")

    # -- a thread block ------------------------------------------------------------------------------------

    def shared(self, kind: str, size: int) -> str:
        array = self.fresh("s")
        self.write(f"__shared__ {C_TYPES[kind]} {array}[{size}];")
        return array

    def exchange(self) -> None:
        """Each thread writes an element, and after the barrier reads elements of others."""
        name, kind = self.target()
        b = self.block
        array = self.shared(kind, b)
        shift = self.choices.below(b)
        places = [f"(t + {shift}u) % {b}u", f"{b - 1}u - t"]
        if b & (b - 1) == 0:
            places += [f"t ^ {shift}u", f"(t * {2 * shift + 1}u) & {b - 1}u"]
        self.write(f"{array}[{self.choices.one(places)}] = {self.expression(kind, 2)};")
        self.write("__syncthreads();")
        for _ in range(1 + self.choices.below(2)):
            self.write(f"{name} = {array}[{self.expression('u32', 2)} % {b}u];")
            name, _ = self.target((kind,))
        self.write("__syncthreads();")

    def warp_exchange(self) -> None:
        """The same within a warp, with its own barrier."""
        name, kind = self.target()
        array = self.shared(kind, self.block)
        self.write(f"{array}[t] = {self.expression(kind, 2)};")
        self.write("__syncwarp(warp_mask);")
        self.write(f"{name} = {array}[t - lane + {self.expression('u32', 2)} % warp_lanes];")
        self.write("__syncwarp(warp_mask);")

    def tree(self) -> None:
        """A sum of the block by halves."""
        if self.block & (self.block - 1):
            return self.exchange()
        name, kind = self.target(
            tuple(k for k in self.expressions.kinds if k in ("u32", "u64", "f32", "f64")) or ("u32",)
        )
        array, step = self.shared(kind, self.block), self.fresh("h")
        self.write(f"{array}[t] = {self.expression(kind, 2)};")
        self.write("__syncthreads();")
        self.write(f"for (unsigned {step} = {self.block // 2}; {step} > 0; {step} >>= 1) {{")
        self.write(f"if (t < {step}) {array}[t] {self.choices.one(('+=', '*=', '-='))} {array}[t + {step}];")
        self.write("__syncthreads();")
        self.write("}")
        self.write(f"{name} = {array}[{self.choices.one(('0', 't >> 1'))}];")
        self.write("__syncthreads();")
        return None

    def histogram(self) -> None:
        """Shared atomics between barriers."""
        name, _ = self.target(("u32",))
        array = self.shared("u32", 16)
        operation, start = self.choices.one(
            (("Add", 0), ("Max", 0), ("Min", 0xFFFFFFFF), ("Xor", 5), ("Or", 0), ("And", 0xFFFFFFFF))
        )
        self.write(f"for (unsigned e = t; e < 16u; e += {self.block}u) {array}[e] = {start}u;")
        self.write("__syncthreads();")
        value = self.expression("u32", 2)
        if self.choices.happens(30):
            self.write(f"if ({self.expressions.boolean(1)})")
        self.write(f"atomic{operation}(&{array}[{self.expression('u32', 2)} & 15u], {value});")
        self.write("__syncthreads();")
        self.write(f"{name} += {array}[{self.expression('u32', 1)} & 15u];")
        self.write("__syncthreads();")

    def block_vote(self) -> None:
        name, _ = self.target(("u32",))
        form = self.choices.one(("count", "and", "or"))
        self.write(f"{name} += (unsigned)(__syncthreads_{form}({self.expressions.boolean(2)}) != 0) + 1u;")
        if form == "count":
            self.write(f"{name} += __syncthreads_count({self.expressions.boolean(1)});")


NESTED = {"branch", "switch", "loop", "uniform_loop"}
LOCAL = {
    *("assign", "new_variable", "branch", "switch", "loop", "collatz"),
    *("vector", "local_array", "constant_table", "atomic"),
}
TABULATED = ("u32", "s16", "u8", "f32", "f64")
SUMMED = ("u32", "u64", "f32", "f64")
SHUFFLED = ("u32", "s32", "u64", "s64", "f32", "f64")

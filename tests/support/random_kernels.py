"""Random kernels in CUDA C++ for differential tests: expressions of many types, accesses of many patterns, shared tiles
with barriers, loops and branches. Some race, read what nobody wrote, or leave their arrays."""

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

TYPES = {
    "float": np.float32,
    "double": np.float64,
    "int": np.int32,
    "unsigned": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "short": np.int16,
    "unsigned short": np.uint16,
    "signed char": np.int8,
    "unsigned char": np.uint8,
}
FLOATS = ("float", "double")
BLOCKS = [(32, 1), (64, 1), (16, 4), (8, 8), (96, 1), (128, 1), (16, 16), (48, 1)]
_MODES: list[dict[str, Any]] = [
    *[{}] * 4,
    {"checks": False},
    {"races": False, "trace_events": 40},
    {"used_reads_only": True},
    {"volatile_orders": True, "trace_warps": 2},
    {"checks": False, "counters": False},
]


@dataclass
class RandomKernel:
    """`arrays`: of the launch's arguments, in order."""

    source: str
    grid: int
    block: tuple[int, int]
    arrays: list[np.ndarray]
    options: dict[str, Any]


class _Writer:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.block, self.grid = self.rng.choice(BLOCKS), self.rng.randrange(1, 6)
        self.threads = self.block[0] * self.block[1]
        self.n = self.grid * self.threads
        self.faulty = self.rng.random() < 0.5  # does anything wrong happen, perhaps?
        self.types = self.rng.choices(list(TYPES), k=self.rng.randrange(2, 5))
        self.locals: dict[str, str] = {}  # names of variables, and their types
        self.depth = 0

    def fault(self, share: float) -> bool:
        return self.faulty and self.rng.random() < share

    def index(self) -> str:
        """Return an element of an array of n."""
        rng, n = self.rng, self.n
        k = rng.randrange(1, 12)
        if self.fault(0.08):
            return rng.choice([f"i + {k}", f"i - {k}", f"i * {k}"])
        return rng.choice(
            [
                *["i"] * 5,
                f"(i ^ {rng.choice([1, 2, 16])}) % {n}",
                f"{n - 1} - i",
                f"(i * {k}) % {n}",
                f"i / {k}",
                f"(i + {k}) % {n}",
                f"(blockIdx.x * {k} + y) % {n}",
                f"(x * {k} + y) % {n}",
                str(rng.randrange(n)),
                f"(unsigned)where[i] % {n}",
            ]
        )

    def value(self, kind: str, depth: int = 0) -> str:
        """Return an expression of a type."""
        rng = self.rng
        known = [name for name, of in self.locals.items() if of == kind]
        if depth > 2 or rng.random() < 0.25:
            options = [f"({kind}){rng.choice(['i', 'x', 't', str(rng.randrange(-5, 90))])}", *known * 3]
            return rng.choice(options)
        if rng.random() < 0.15 and self.locals:  # a conversion
            name = rng.choice(list(self.locals))
            return f"({kind}){name}"
        if rng.random() < 0.15:
            a, b = self.value(kind, depth + 1), self.value(kind, depth + 1)
            return f"(({kind})(({self.condition()}) ? {a} : {b}))"
        a, b = self.value(kind, depth + 1), self.value(kind, depth + 1)
        if kind in FLOATS:
            suffix = "f" if kind == "float" else ""
            how = rng.choice(["+", "-", "*", "fma", "min", "abs", "/"])
            if how == "fma":
                return f"fma{suffix}({a}, {b}, {self.value(kind, depth + 1)})"
            if how in ("min", "abs"):
                return f"fmin{suffix}({a}, {b})" if how == "min" else f"fabs{suffix}({a})"
            return f"({a} {how} {b})"
        how = rng.choice(["+", "-", "*", "&", "|", "^", "<<", ">>", "/", "%"])
        if how in ("<<", ">>"):
            b = f"({b} & 7)"
        if how in ("/", "%"):
            near = f"({kind})(n - {self.n + rng.randrange(-9, 10)})"  # of all lanes: below 0, 0 or above
            all_lanes = [near, f"({kind})where[{rng.randrange(self.n)}]"]
            a = rng.choice([a, a, f"({kind})(n + {rng.randrange(9)})", *all_lanes])
            b = rng.choice([f"(({b} & 7) + 1)", f"({kind})(({b} & 7) - 3)", *all_lanes])
        return f"(({kind})({a} {how} {b}))"

    def condition(self) -> str:
        rng = self.rng
        name, _ = rng.choice([*self.locals.items(), ("t", "int")])
        return f"{name} {rng.choice(['<', '>', '==', '!='])} {rng.choice(['x', 't', '3', 'i % 5', 'y'])}"

    def load(self) -> list[str]:
        rng, name = self.rng, f"v{len(self.locals)}"
        k = rng.randrange(len(self.types))
        kind = self.types[k]
        if kind == "float" and rng.random() < 0.25:
            self.locals[name] = kind
            of = rng.choice(["i / 4", f"(i * 3) % {self.n // 4}", f"x % {self.n // 4}"])
            quad = f"reinterpret_cast<const float4*>(a{k})[{of}]"
            return [f"float4 q{name} = {quad}; float {name} = q{name}.x + q{name}.y * q{name}.z - q{name}.w;"]
        lines = [f"{kind} {name} = a{k}[{self.index()}];"]
        self.locals[name] = kind
        return lines

    def store(self) -> list[str]:
        k = self.rng.randrange(len(self.types))
        index = self.index() if self.fault(0.4) else "i"
        return [f"out{k}[{index}] = {self.value(self.types[k])};"]

    def tile(self) -> list[str]:
        """Return what exchanges values through shared memory."""
        rng, name = self.rng, f"v{len(self.locals)}"
        kind = rng.choice([*self.types, "float"])
        size, tile = self.threads, f"tile{name}"
        barrier = "__syncwarp();" if self.fault(0.3) else "__syncthreads();"
        barrier = "" if self.fault(0.2) else barrier
        read = rng.choice(
            [f"t ^ 1) % {size}", f"{size - 1} - t)", f"t * 5) % {size}", f"y * {self.block[0]})", "x)", "7)"]
        )
        guard = f"if (t != {rng.randrange(size)}) " if self.fault(0.2) else ""
        lines = [
            f"__shared__ {kind} {tile}[{size}];",
            f"{guard}{tile}[t] = {self.value(kind)};",
            barrier,
            f"{kind} {name} = {tile}[({read}];",
        ]
        if rng.random() < 0.5:
            self.locals[name] = kind
            more = (
                f"for (int k = 0; k < {rng.choice([4, 9, self.block[0]])}; k++) {name} += {tile}[(k * 3 + y) % {size}];"
            )
            lines += [more, "" if self.fault(0.2) else "__syncthreads();"]
        self.locals[name] = kind
        return lines

    def loop(self) -> list[str]:
        rng, name = self.rng, f"v{len(self.locals)}"
        k = rng.randrange(len(self.types))
        kind = self.types[k]
        self.locals[name] = kind
        trips = rng.choice(["5", "9", "t % 4", "n & 7"])
        body = [f"{name} += a{k}[(i + j * {rng.randrange(1, 9)}) % {self.n}];", f"{name} = {self.value(kind)};"]
        if rng.random() < 0.4:
            body.append(f"out{k}[i] = {name};")
        return [f"{kind} {name} = {self.value(kind)};", f"for (int j = 0; j < {trips}; j++) {{ {' '.join(body)} }}"]

    def others(self) -> list[str]:
        rng, name = self.rng, f"v{len(self.locals)}"
        which = rng.randrange(4)
        if which == 0 and self.threads % 32 == 0:
            lines = [f"int {name} = __shfl_xor_sync(~0u, {self.value('int')}, {rng.choice([1, 8, 16])});"]
        elif which == 1:
            lines = [
                f"atomicAdd(&sums[{rng.choice(['0', 'x & 7', 't % 8'])}], {self.value('int')});",
                f"int {name} = x;",
            ]
        elif which == 2:
            index = f"({self.value('int')}) & 3"
            lines = [f"int own{name}[4] = {{t, x, y, 1}}; own{name}[{index}] += 3; int {name} = own{name}[t & 3];"]
        else:
            inner = self.store()
            lines = [f"if ({self.condition()}) {{ {' '.join(inner)} }}", f"int {name} = t;"]
        self.locals[name] = "int"
        return lines

    def kernel(self, seed: int) -> RandomKernel:
        rng = self.rng
        lines = [*self.load(), *self.load()]
        for _ in range(rng.randrange(3, 8)):
            lines += rng.choice([self.load, self.load, self.store, self.tile, self.loop, self.others])()
        for k, kind in enumerate(self.types):
            lines.append(f"out{k}[i] = {self.value(kind)};")
        parameters = [f"const {kind}* a{k}, {kind}* out{k}" for k, kind in enumerate(self.types)]
        width = self.block[0]
        head = (
            f'extern "C" __global__ void random_kernel({", ".join(parameters)}, const int* where, int* sums, int n) {{'
        )
        places = f"int x = threadIdx.x, y = threadIdx.y, t = y * {width} + x, i = blockIdx.x * {self.threads} + t;"
        guard = f"if (i >= {self.n - rng.choice([0, 0, 5])}) return;" if "__sync" not in " ".join(lines) else ""
        source = "\n    ".join([head, places, guard, *lines]) + "\n}\n"
        numbers = np.random.default_rng(seed)
        arrays = []
        for kind in self.types:
            dtype = TYPES[kind]
            low = 0 if np.dtype(dtype).kind == "u" else -100
            whole = numbers.integers(low, 100, self.n)
            given = (numbers.standard_normal(self.n) * 9 if kind in FLOATS else whole).astype(dtype)
            if rng.random() < 0.3:
                limits = np.finfo(dtype) if kind in FLOATS else np.iinfo(dtype)
                edges = [limits.min, limits.max, 0, 1]
                if kind in FLOATS:
                    edges += [np.nan, np.inf, -np.inf, -0.0, limits.smallest_normal, -limits.smallest_subnormal]
                given[numbers.integers(0, self.n, len(edges))] = edges
            arrays += [given, np.zeros(self.n, dtype)]
        arrays += [numbers.integers(0, 1 << 20, self.n).astype(np.int32), np.zeros(8, np.int32)]
        options = dict(rng.choice(_MODES)) | {"chunk_lanes": rng.choice([1 << 15, 64, 256])}
        return RandomKernel(source, self.grid, self.block, arrays, options)


def random_kernel(seed: int) -> RandomKernel:
    """Return the kernel of a seed, with the arguments and options of a launch."""
    return _Writer(seed).kernel(seed)

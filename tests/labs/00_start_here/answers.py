"""Right and wrong answers to the tasks of lesson 00 ("Your turn"), by the id of the answer cell."""

from tests.support.lesson_answers import Answers

THREAD = "i = cuda.threadIdx.x"
GRID = "i = cuda.grid(1)"
GUARD = "if i < out.size:"
SERIAL = "one thread does too much of the work"
COLUMN, ROW = "column = cuda.threadIdx.x", "row = cuda.threadIdx.y"
BOTH = "if row < out.shape[0] and column < out.shape[1]:"
TILE = "tile = cuda.shared.array(64, np.float32)", "t = cuda.threadIdx.x"
BARRIER = "cuda.syncthreads()"


def kernel(head: str, *body: str) -> str:
    return "\n".join(["@cuda.jit", f"def {head}:", *(f"    {line}" for line in body)])


def add(*body: str) -> str:
    return kernel("add(x, y, out)", *body)


def triple(*body: str) -> str:
    return kernel("triple(x)", *body)


def double_all(*body: str) -> str:
    return kernel("double_all(x, out)", *body)


def table(*body: str) -> str:
    return kernel("table(x, y, out)", *body)


def backwards(*body: str) -> str:
    return kernel("backwards(x, out)", *body)


def relu(*body: str) -> str:
    return kernel("relu(x, out)", *body)


def add_mirrored(*body: str) -> str:
    return kernel("add_mirrored(x, out)", *TILE, *body)


def block_sums(*body: str, start: str = "tile[t] = x[cuda.grid(1)]") -> str:
    return kernel("block_sums(x, out)", *TILE, start, *body)


SUM = "out[i] = x[i] + y[i]"
TWICE = "out[row, column] = 2 * x[row, column]"
# Lanes of a warp that take turns, in blocks of any width.
TURNS = (
    "lane = (row * cuda.blockDim.x + column) % 32",
    "for k in range(32):",
    "    if k == lane and row < out.shape[0] and column < out.shape[1]:",
)
DIVIDED = ("if k < x.size: out[k // x.shape[1], k % x.shape[1]] = 2 * x[k // x.shape[1], k % x.shape[1]]",)
PRODUCT = "out[row, column] = x[row] * y[column]"
TURNED = "out[i] = x[x.size - 1 - i]"
STRIDE = "for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):"
POSITIVE = "    out[i] = max(x[i], 0)"
PUT, MIRRORED = "tile[t] = x[cuda.grid(1)]", "out[cuda.grid(1)] = tile[t] + tile[63 - t]"
HALVES = "half = 32", "while half > 0:"
ADDED = "    if t < half: tile[t] += tile[t + half]"
NEXT = "    half //= 2"
FIRST = "if t == 0: out[cuda.blockIdx.x] = tile[0]"

ANSWERS = {
    "your-turn-map": Answers(
        add(THREAD, SUM),
        {
            add(THREAD, "if i < out.size - 1:", f"    {SUM}"): "the last of 1000 elements",
            add(THREAD, "out[i] = x[i] * y[i]"): "the expression that computes",
            "def add(x, y, out):\n    out[:] = x + y": "runs on the host",
            add(THREAD, "out = x[i] + y[i]"): "name the element: out[i] = x[i] + y[i]",
            add("i = cuda.grid()", SUM): "asks for the number of dimensions",
            add("if cuda.threadIdx.x == 0:", "    for i in range(out.size):", f"        {SUM}"): SERIAL,
            add("for i in range(out.size):", f"    {SUM}"): "Does every thread do all the work?",
        },
    ),
    "your-turn-guard": Answers(
        triple(THREAD, "if i < x.size:", "    x[i] = 3 * x[i]"),
        {
            triple(THREAD, "x[i] = 3 * x[i]"): "the guard",
            triple(THREAD, "if i <= x.size:", "    x[i] = 3 * x[i]"): "<= lets the size itself through",
            triple(THREAD, "if i < x.size:", "    x[i] = 2 * x[i]"): "the expression that computes",
            triple(THREAD, "if i < x.size:", "    x = 3 * x[i]"): "name the element: x[i] = 3 * x[i]",
            triple("x[:] = 3 * x"): "A kernel is what one thread does",
        },
    ),
    "your-turn-plane": Answers(
        double_all(COLUMN, ROW, BOTH, f"    {TWICE}"),
        {
            double_all(COLUMN, ROW, TWICE): "past the end of x",
            double_all("row = cuda.threadIdx.x", "column = cuda.threadIdx.y", BOTH, f"    {TWICE}"): "never written",
            double_all(COLUMN, ROW, "if row < out.shape[0]:", f"    {TWICE}"): "compared with the size",
            double_all(COLUMN, ROW, BOTH, "    out[row, column] = x[row, column]"): "out is wrong",
            double_all(COLUMN, ROW, *TURNS, f"        {TWICE}"): "too many global store requests",
        },
        also=(
            double_all(
                COLUMN,
                ROW,
                "if row < out.shape[0] and column < out.shape[1]:",
                "    k = row * out.shape[1] + column",
                "    out.reshape(-1)[k] = 2 * x.reshape(-1)[k]",
            ),
            double_all("k = cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x", *DIVIDED),
        ),
    ),
    "your-turn-table": Answers(
        table(COLUMN, ROW, BOTH, f"    {PRODUCT}"),
        {
            table(COLUMN, ROW, PRODUCT): "past the end of",
            table("row, column = cuda.grid(2)", BOTH, f"    {PRODUCT}"): "never written",
            table(
                COLUMN, ROW, BOTH, "    out[row, column] = x[column] * y[row]"
            ): "holds the right value of element [1, 0]",
            table(COLUMN, ROW, BOTH, "    out[row, column] = x[row] * y[row]"): "out is wrong",
            table(COLUMN, ROW, BOTH.replace(" and ", " or "), f"    {PRODUCT}"): "in one of the two alone: write and.",
            table(COLUMN, ROW, BOTH.replace("<", "<="), f"    {PRODUCT}"): "which is no index: write <.",
            table(COLUMN, ROW, *TURNS, f"        {PRODUCT}"): "too many global store requests",
        },
    ),
    "your-turn-reverse": Answers(
        backwards(GRID, GUARD, f"    {TURNED}"),
        {
            backwards(GRID, TURNED): "the guard",
            backwards(GRID, GUARD, "    out[i] = x[x.size - i]"): "the thread reads x[1000]",
            backwards(THREAD, GUARD, f"    {TURNED}"): "as many as one block has threads",
            backwards(GRID, GUARD, "    out[i] = x[i]"): "out is wrong",
            backwards("if cuda.grid(1) == 0:", "    for i in range(out.size):", f"        {TURNED}"): SERIAL,
        },
        also=(
            backwards(
                "i, j = cuda.grid(1), x.size - 1 - cuda.grid(1)", "if i <= j:", "    out[i], out[j] = x[j], x[i]"
            ),
        ),
    ),
    # A run of neighbours for each thread passes here: it is right, and sectors are taught after it. Exercise 01 refuses
    # it, for its sectors (multiply-any-grid, a_chunk_per_thread).
    "your-turn-stride": Answers(
        relu(STRIDE, POSITIVE),
        {
            relu(GRID, GUARD, POSITIVE): "as many as the launch has threads",
            relu("for i in range(cuda.threadIdx.x, out.size, cuda.blockDim.x):", POSITIVE): SERIAL,
            relu("if cuda.grid(1) == 0:", "    for i in range(out.size):", f"    {POSITIVE}"): SERIAL,
            relu(STRIDE, "    out[i] = abs(x[i])"): "out is wrong",
            relu(STRIDE, "    out[i] = max(x, 0)"): "x is a whole array",
            relu(STRIDE, "    if x[i] > 0: out[i] = x[i]"): "Every element needs a store",
            relu(
                "for i in range(cuda.grid(1), cuda.gridsize(1), out.size):", POSITIVE
            ): "ends before cuda.gridsize(1), and steps by out.size",
        },
    ),
    "your-turn-mirror": Answers(
        add_mirrored(PUT, BARRIER, MIRRORED),
        {
            add_mirrored(PUT, MIRRORED): "data race",
            add_mirrored(GRID, "out[i] = x[i] + x[i - t + 63 - t]"): "bytes loaded from global memory",
            add_mirrored(PUT, BARRIER, MIRRORED.replace("63", "64")): "reaches outside its arrays",
            add_mirrored(PUT, BARRIER, MIRRORED.replace("63 - t", "t")): "out is wrong",
        },
        also=(
            add_mirrored(PUT, BARRIER, "s = tile[63 - t]", BARRIER, "tile[t] += s", "out[cuda.grid(1)] = tile[t]"),
            add_mirrored("v = x[cuda.grid(1)]", "tile[63 - t] = v", BARRIER, "out[cuda.grid(1)] = v + tile[t]"),
        ),
    ),
    "your-turn-sum": Answers(
        block_sums(BARRIER, *HALVES, ADDED, f"    {BARRIER}", NEXT, FIRST),
        {
            block_sums(*HALVES, ADDED, NEXT, FIRST): "data race",
            block_sums(
                BARRIER,
                *HALVES,
                "    if t < half:",
                "        tile[t] += tile[t + half]",
                f"        {BARRIER}",
                NEXT,
                FIRST,
            ): "was stopped by the simulator",
            block_sums(BARRIER, *HALVES, ADDED.replace("if t < half: ", ""), NEXT, FIRST): "reaches outside its arrays",
            block_sums(BARRIER, "half = 16", *HALVES[1:], ADDED, f"    {BARRIER}", NEXT, FIRST): "out is wrong",
            block_sums(
                BARRIER,
                "if t == 0:",
                "    s = np.float32(0)",
                "    for k in range(64):",
                "        s += tile[k]",
                "    out[cuda.blockIdx.x] = s",
            ): "the warp efficiency is too low",
            block_sums(
                BARRIER, "s = np.float32(0)", "for k in range(64):", "    s += tile[k]", "out[cuda.blockIdx.x] = s"
            ): "shared load requests",
            block_sums(
                BARRIER, *HALVES, ADDED, f"    {BARRIER}", NEXT, "out[cuda.blockIdx.x] = tile[0]"
            ): "too many global store requests",
            block_sums(
                BARRIER, *HALVES, ADDED, f"    {BARRIER}", NEXT, "out[cuda.grid(1)] = tile[0]"
            ): "which has one element for each block",
        },
        also=(
            block_sums(
                "cuda.syncthreads()",
                "for k in range(6):",
                "    o = tile[t ^ (1 << k)]",
                f"    {BARRIER}",
                "    tile[t] += o",
                f"    {BARRIER}",
                FIRST,
            ),
            block_sums(
                "for k in (16, 8, 4, 2, 1):",
                "    v += cuda.shfl_down_sync(0xffffffff, v, k)",
                "tile[t] = v",
                BARRIER,
                "if t == 0: out[cuda.blockIdx.x] = tile[0] + tile[32]",
                start="v = x[cuda.grid(1)]",
            ),
        ),
    ),
}

"""Right and wrong answers to the tasks of lesson 04 ("Your turn"), by the id of the answer cell."""

from textwrap import dedent

from tests.support.lesson_answers import Answers, one_line

ONE_ROW = "c[row, column] = sum0"
ALL_ROWS = "; ".join(f"c[row + {8 * r}, column] = sum{r}" for r in range(4))
ONE_OF_A = "a_tile[y + r, x] = a[row + r, start + x]"
OF_B = "b_tile[y + r, x] = b[start + y + r, column]"
VALUE = "value = b_tile[i, x]"
INNER = "; ".join([VALUE, *(f"sum{r} += a_tile[y + {8 * r}, i] * value" for r in range(4))])


def four_rows(
    a: str = ONE_OF_A, b: str = OF_B, inner: str = INNER, end: str = "cuda.syncthreads()", store: str = ALL_ROWS
) -> str:
    return dedent(
        f"""\
        @cuda.jit
        def four_rows(a, b, c):
            a_tile = cuda.shared.array((32, 32), float32)
            b_tile = cuda.shared.array((32, 32), float32)
            x, y = cuda.threadIdx.x, cuda.threadIdx.y
            row, column = cuda.blockIdx.y * 32 + y, cuda.blockIdx.x * 32 + x
            sum0 = sum1 = sum2 = sum3 = float32(0)
            for start in range(0, a.shape[1], 32):
                for r in range(0, 32, 8):
                    {a}
                    {b}
                cuda.syncthreads()
                for i in range(32): {inner}
                {end}
            {store}"""
    )


def wide(group: str = "s // 4 % 8", lanes: str = "range(0, 32, 8)", result: str = "sum(most)") -> str:
    return dedent(
        f"""\
        def wide_passes(starts):
            most = []
            for first in {lanes}:
                groups = [{group} for s in starts[first : first + 8]]
                most.append(max(groups.count(g) for g in groups))
            return {result}"""
    )


def any_k(
    a: str = "a[row, start + x] if start + x < a.shape[1] else float32(0)",
    b: str = "b[start + y, column] if start + y < a.shape[1] else float32(0)",
    inner: str = "total += a_tile[y, i] * b_tile[i, x]",
    end: str = "cuda.syncthreads()",
) -> str:
    return dedent(
        f"""\
        @cuda.jit
        def any_k(a, b, c):
            a_tile = cuda.shared.array((32, 32), float32)
            b_tile = cuda.shared.array((32, 32), float32)
            x, y = cuda.threadIdx.x, cuda.threadIdx.y
            column, row = cuda.grid(2)
            total = float32(0)
            for start in range(0, a.shape[1], 32):
                a_tile[y, x] = {a}
                b_tile[y, x] = {b}
                cuda.syncthreads()
                for i in range(32):
                    {inner}
                {end}
            c[row, column] = total"""
    )


SERIAL_PRODUCT = dedent(
    """\
    @cuda.jit
    def KERNEL(a, b, c):
        x, y = cuda.grid(2)
        if x == 0 and y == 0:
            for row in range(c.shape[0]):
                for column in range(c.shape[1]):
                    total = float32(0)
                    for i in range(a.shape[1]):
                        total += a[row, i] * b[i, column]
                    c[row, column] = total"""
)


def two_by_two(loop: str, last: str = "c[lower, right] = s11") -> str:
    return dedent(
        f"""\
        @cuda.jit
        def two_by_two(a, b, c):
            column, row = cuda.grid(2)
            lower, right = row + c.shape[0] // 2, column + c.shape[1] // 2
            s00 = s01 = s10 = s11 = float32(0)
            for i in range(a.shape[1]):
                {loop}
            c[row, column] = s00
            c[row, right] = s01
            c[lower, column] = s10
            {last}"""
    )


OUTER = "a0, a1, b0, b1 = a[row, i], a[lower, i], b[i, column], b[i, right]; "
OUTER += "s00 += a0 * b0; s01 += a0 * b1; s10 += a1 * b0; s11 += a1 * b1"
BY_ELEMENT = dedent(
    """\
    @cuda.jit
    def two_by_two(a, b, c):
        column, row = cuda.grid(2)
        half_m, half_n = c.shape[0] // 2, c.shape[1] // 2
        for r in range(row, c.shape[0], half_m):
            for s in range(column, c.shape[1], half_n):
                total = float32(0)
                for i in range(a.shape[1]):
                    total += a[r, i] * b[i, s]
                c[r, s] = total"""
)


EIGHT_WORDS = """\
float p[4], q[4];
            for (int r = 0; r < 4; r++) {
                p[r] = a_tile[i][4 * y + r];
                q[r] = b_tile[i][x + 8 * r];
            }
            for (int r = 0; r < 4; r++)
                for (int s = 0; s < 4; s++)
                    sum[r][s] += p[r] * q[s];"""
FROM_SHARED_EACH_TIME = """\
volatile float *p = a_tile[i] + 4 * y, *q = b_tile[i] + x;
            for (int r = 0; r < 16; r++)
                sum[r / 4][r % 4] += p[r / 4] * q[r % 4 * 8];"""


def four_by_four(pad: int = 4, inner: str = EIGHT_WORDS, end: str = "__syncthreads();", steps: int = 8) -> str:
    return f"""\
%%cuda
constexpr int PAD = {pad};

extern "C" __global__ void four_by_four(const float* a, const float* b, float* c, int n, int k)
{{
    __shared__ float a_tile[8][32 + PAD], b_tile[8][32];
    int x = threadIdx.x, y = threadIdx.y, row = 32 * blockIdx.y, column = 32 * blockIdx.x;
    float sum[4][4] = {{}};
    for (int start = 0; start < k; start += 8) {{
        for (int i = 8 * y + x; i < 256; i += 64) {{
            a_tile[i % 8][i / 8] = a[(row + i / 8) * k + start + i % 8];
            b_tile[i / 32][i % 32] = b[(start + i / 32) * n + column + i % 32];
        }}
        __syncthreads();
        for (int i = 0; i < {steps}; i++) {{
            {inner}
        }}
        {end}
    }}
    for (int r = 0; r < 4; r++)
        for (int s = 0; s < 4; s++)
            c[(row + 4 * y + r) * n + column + x + 8 * s] = sum[r][s];
}}"""


SERIAL_BY_FOURS = """\
%%cuda
extern "C" __global__ void four_by_four(const float* a, const float* b, float* c, int n, int k)
{
    if (threadIdx.x + threadIdx.y)
        return;
    for (int r = 32 * blockIdx.y; r < 32 * blockIdx.y + 32; r++)
        for (int s = 32 * blockIdx.x; s < 32 * blockIdx.x + 32; s++) {
            float sum = 0;
            for (int i = 0; i < k; i++)
                sum += a[r * k + i] * b[i * n + s];
            c[r * n + s] = sum;
        }
}"""


def in_turn(*body: str) -> str:
    lines = "\n".join(f"        {line}" for line in body)
    return f"""\
@cuda.jit
def in_turn(source, out):
    own = cuda.shared.array((2, 64), float32)
    t, now = cuda.threadIdx.x, 0
    for first in range(64 * cuda.blockIdx.x, out.size, 64 * cuda.gridDim.x):
{lines}"""


FILL, WAIT, EMPTY = "own[now, t] = source[first + t]", "cuda.syncthreads()", "out[first + t] = own[now, 63 - t]"
OTHER = "now = 1 - now"

PEAK = "peak(sms, cores, clock_mhz)"
INTENSITY = "intensity(m, n, k)"
HALVES = "a_tile = cuda.shared.array((32, 32), np.float16)"
TOTAL = "total += float32(1) * a"
BUSY = "busy(m, n, tile, sms)"
TILES = "math.ceil(m / tile) * math.ceil(n / tile)"
CEILING = "math.ceil(m * n / tile**2)"
SPLIT = "split(m, n, k, bm, bn, blocks, choices)"
STEP = "max(min(blocks, math.ceil(launched / 132)) * bm * bn * 16 / 128 / 1830, 0.4)"


def split(step: str = STEP, fix_up: str = "1 + 0.2 * parts if parts > 1 else 0", best: str = "min") -> str:
    return dedent(
        f"""\
        def {SPLIT}:
            def time(parts):
                launched = math.ceil(m / bm) * math.ceil(n / bn) * parts
                rounds, steps = math.ceil(launched / (132 * blocks)), math.ceil(k / 16 / parts)
                return rounds * (3.5 + steps * {step}) + ({fix_up})

            return {best}(choices, key=time)
        """
    )


ANSWERS = {
    "your-turn-peak": Answers(
        one_line(PEAK, "sms * cores * 2 * clock_mhz / 1e6"),
        {
            one_line(PEAK, "sms * cores * clock_mhz / 1e6"): "every result is 0.5 times the right one",
            one_line(PEAK, "sms * cores * 2 * clock_mhz"): "a power of 1000 is missing",
            one_line(PEAK, "sms * 64 * 2 * clock_mhz / 1e6"): "peak(sms=132, cores=128, clock_mhz=1980)",
        },
    ),
    "your-turn-intensity": Answers(
        one_line(INTENSITY, "m * n * k / (2 * (m * k + k * n + m * n))"),
        {
            one_line(INTENSITY, "2 * m * n * k / (m * k + k * n + m * n)"): "every result is 4 times the right one",
            one_line(INTENSITY, "m * n * k / (4 * (m * k + k * n + m * n))"): "every result is 0.5 times",
            one_line(INTENSITY, "m * n * k / (2 * (m * k + k * n))"): "the error differs from input to input",
        },
    ),
    "your-turn-any-k": Answers(
        any_k(),
        {
            any_k(a="a[row, start + x]", b="b[start + y, column]"): "past the end of",
            any_k(b="b[start + y, column]"): "past the end of b",
            any_k(end="pass"): "nothing orders the two",
            any_k(inner="total += a[row, start + i] * b[start + i, column] if start + i < a.shape[1] else 0"): (
                "too many global load bytes"
            ),
            SERIAL_PRODUCT.replace("KERNEL", "any_k"): "too many global load bytes",
            any_k().replace("a_tile = cuda.shared.array((32, 32), float32)", HALVES).replace("total += a", TOTAL): (
                "c is wrong"
            ),
        },
    ),
    "your-turn-two-by-two": Answers(
        two_by_two(OUTER),
        {
            two_by_two(OUTER.replace("s11 += a1 * b1", "s11 += a1 * b0")): "c is wrong",
            two_by_two(OUTER, "pass"): "never written",
            BY_ELEMENT: "too many global load requests",
            SERIAL_PRODUCT.replace("KERNEL", "two_by_two"): "too many global load requests",
        },
    ),
    "your-turn-four-rows": Answers(
        four_rows(),
        {
            four_rows(b=OF_B.replace("[y + r, x] =", "[x, y + r] ="), inner=INNER.replace("[i, x]", "[x, i]")): (
                "too many shared load wavefronts"
            ),
            four_rows(inner=INNER.replace("a_tile[y + 0, i]", "a[row, start + i]")): "too many global load sectors",
            four_rows(a="if r < 16: " + ONE_OF_A): "uninitialised read",
            four_rows(end="pass"): "race",
            four_rows(store=ONE_ROW): "were never written, the first at [8, 0]",
            four_rows().replace("= float32(0)", "= 0"): "makes a sum float64",
            four_rows().replace("= float32(0)", "= 0.0"): "makes a sum float64",
        },
    ),
    "your-turn-wide": Answers(
        wide(),
        {
            wide(result="max(most)"): "wide_passes returns the wrong value",
            wide(result="4 * max(most)"): "wide_passes returns the wrong value",
            wide(result="4"): "the same value for all",
            wide(group="s // 4 % 32"): "wide_passes returns the wrong value",
            wide(lanes="range(0, 32, 16)", result="2 * sum(most)"): "wide_passes returns the wrong value",
        },
    ),
    "your-turn-four-by-four": Answers(
        four_by_four(),
        {
            four_by_four(pad=0): "too many shared store bank conflicts",
            four_by_four(pad=1): "too many shared store bank conflicts",
            four_by_four(inner=FROM_SHARED_EACH_TIME): "too many shared load wavefronts",
            four_by_four(inner=EIGHT_WORDS.replace("[x + 8 * r]", "[4 * x + r]")): "c is wrong",
            four_by_four(steps=7): "c is wrong",
            four_by_four(end=""): "nothing orders the two",
            SERIAL_BY_FOURS: "too many global load sectors",
        },
    ),
    "your-turn-two-tiles": Answers(
        in_turn(FILL, WAIT, EMPTY, OTHER),
        {
            in_turn(FILL, WAIT, EMPTY): "nothing orders the two",
            in_turn(FILL, WAIT, EMPTY, WAIT): "too many barriers",
            in_turn(FILL, EMPTY, OTHER): "nothing orders the two",
            in_turn("out[first + t] = source[first + 63 - t]"): "too few shared load requests",
            in_turn(
                "if t == 0:",
                "    for i in range(64):",
                "        own[now, i] = source[first + i]",
                WAIT,
                EMPTY,
                OTHER,
            ): "one thread does too much of the work",
        },
    ),
    "your-turn-busy": Answers(
        one_line(BUSY, f"m * n / (math.ceil({TILES} / sms) * sms * tile * tile)"),
        {
            one_line(BUSY, f"{TILES} / (math.ceil({TILES} / sms) * sms)"): "busy(m=16, n=256, tile=128, sms=2)",
            one_line(BUSY, f"m * n / ({TILES} * tile * tile)"): "busy(m=128, n=128, tile=128, sms=10)",
            one_line(
                BUSY, f"m * n / (math.ceil({CEILING} / sms) * sms * tile * tile)"
            ): "busy(m=16, n=1024, tile=128, sms=4)",
            one_line(BUSY, "m * n / (math.ceil(math.ceil(m / tile) * (n // tile) / sms) * sms * tile * tile)"): (
                "busy(m=256, n=144, tile=128, sms=2)"
            ),
            one_line(BUSY, "1.0"): "the same value for all",
        },
    ),
    "your-turn-split": Answers(
        split(),
        {
            split(best="max"): "takes too long",
            split(fix_up="0", step="0.4"): "takes too long",
            one_line(SPLIT, "1"): "takes too long",
            one_line(SPLIT, "[1, 2][-1]"): "returns none of the choices",
        },
        shows="% above the best choice",
    ),
}

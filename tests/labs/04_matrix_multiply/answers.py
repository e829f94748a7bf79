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


PEAK = "peak(sms, cores, clock_mhz)"
INTENSITY = "intensity(m, n, k)"
BUSY = "busy(m, n, tile, sms)"
TILES = "math.ceil(m / tile) * math.ceil(n / tile)"

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
    "your-turn-busy": Answers(
        one_line(BUSY, f"m * n / (math.ceil({TILES} / sms) * sms * tile * tile)"),
        {
            one_line(BUSY, f"{TILES} / (math.ceil({TILES} / sms) * sms)"): "busy(m=16, n=256, tile=128, sms=2)",
            one_line(BUSY, f"m * n / ({TILES} * tile * tile)"): "busy(m=128, n=128, tile=128, sms=10)",
            one_line(BUSY, "1.0"): "the same value for all",
        },
    ),
}

"""Right and wrong answers to the tasks of the lessons ("Your turn"), by notebook and id of the answer cell."""

from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Answers:
    """`right`: accepted. `wrong`: source -> what the check must say of it."""

    right: str
    wrong: dict[str, str]


def numba_add(first: str, body: str) -> str:
    return f"@cuda.jit\ndef add(x, y, out):\n    i = {first}\n    {body}"


def cuda_multiply_add(first: str, body: str) -> str:
    return dedent(
        f"""\
        %%cuda
        __global__ void multiply_add(const float *a, const float *b, const float *c, float *out,
                                     int n) {{
            int i = {first};
            {body}
        }}"""
    )


def rate_of(moved: str, rate: str = "nbytes / seconds") -> str:
    return (
        f"def bytes_moved(vector_bytes, loops):\n    return {moved}\n\n\ndef rate(nbytes, seconds):\n    return {rate}"
    )


def most(elements: str) -> str:
    return f"def most_elements(n, grid, block):\n    return {elements}"


def warp_sum(middle: str, end: str) -> str:
    head = "%%cuda\n__global__ void warp_sum(const float *in, float *out) {\n    float value = in[threadIdx.x];"
    return f"{head}\n    {middle}\n    {end}\n}}"


def one_line(head: str, result: str) -> str:
    return f"def {head}:\n    return {result}"


PYTHON_GRID, CUDA_GRID = "cuda.grid(1)", "blockIdx.x * blockDim.x + threadIdx.x"
SHUFFLE = "for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);"
STRIDE, LITTLE = "sectors(stride, itemsize)", "in_flight(bandwidth, latency, multiprocessors)"
BLOCKS = "blocks(threads, registers, shared_bytes)"
BY_THREADS, BY_REGISTERS = "2048 // threads", "65536 // (threads * registers)"
BY_SHARED = "228 * 1024 // (shared_bytes + 1024)"
PYTHON_SUM, CUDA_SUM = "out[i] = x[i] + y[i]", "out[i] = a[i] * b[i] + c[i];"


def hand_over(readers: str, others: str) -> str:
    return dedent(
        f"""\
        from numba import float32


        @cuda.jit
        def hand_over(x, out):
            left = cuda.shared.array(32, float32)
            lane = cuda.laneid
            if lane < 4:
                {readers}
            else:
                {others}"""
    )


def warp_max(loop: str, step: str = "max(value, __shfl_down_sync(0xffffffff, value, k))") -> str:
    return dedent(
        f"""\
        %%cuda
        __global__ void warp_max(const int *x, int *out) {{
            int i = blockIdx.x * blockDim.x + threadIdx.x, value = x[i];
            for ({loop}) value = {step};
            if (threadIdx.x % 32 == 0) out[i / 32] = value;
        }}"""
    )


def of_a_branch(result: str) -> str:
    return f"def efficiency(lanes, first, second):\n    return {result}"


TWO_SIDES = "(lanes * first + (32 - lanes) * second) / (32 * (first + second))"
SYNC, LEAVE, TAKE_BACK = "cuda.syncwarp()", "left[lane] = x[lane]", "out[lane] = left[lane % 4]"
SHUFFLED = dedent(
    """\
    @cuda.jit
    def hand_over(x, out):
        lane = cuda.laneid
        v = cuda.shfl_sync(ALL, x[lane], 4 + lane % 4)
        out[lane] = v if lane < 4 else 2 * v"""
)
TAKE = "out[lane] = left[lane + 4]; left[lane] = 2 * out[lane]"
ONE_ROW = "c[row, column] = sum0"
ALL_ROWS = "; ".join(f"c[row + {8 * r}, column] = sum{r}" for r in range(4))
ONE_OF_A = "a_tile[y + r, x] = a[row + r, start + x]"
OF_B, VALUE = "b_tile[y + r, x] = b[start + y + r, column]", "value = b_tile[i, x]"
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


PEAK, INTENSITY, BUSY = "peak(sms, cores, clock_mhz)", "intensity(m, n, k)", "busy(m, n, tile, sms)"
TILES = "math.ceil(m / tile) * math.ceil(n / tile)"
CLOCK, SCALE = "clock(tflops, cores, flop)", "loss_scale(largest)"


def long_tile(of_a: str = "a + i, k", of_b: str = "b + 16 * i, 16", first: str = "0", step: str = "16") -> str:
    return dedent(
        f"""\
        %%cuda
        #include <mma.h>
        using namespace nvcuda::wmma;
        __global__ void long_tile(const half *a, const half *b, float *d, int k) {{
            fragment<matrix_a, 16, 16, 16, half, row_major> fa;
            fragment<matrix_b, 16, 16, 16, half, row_major> fb;
            fragment<accumulator, 16, 16, 16, float> sum;
            fill_fragment(sum, 0.0f);
            for (int i = {first}; i < k; i += {step}) {{
                load_matrix_sync(fa, {of_a});
                load_matrix_sync(fb, {of_b});
                mma_sync(sum, fa, fb, sum);
            }}
            store_matrix_sync(d, sum, 16, mem_row_major);
        }}"""
    )


LONG_TILE_WITHOUT_TENSOR_CORES = dedent(
    """\
    %%cuda
    #include <cuda_fp16.h>
    __global__ void long_tile(const half *a, const half *b, float *d, int k) {
        for (int i = threadIdx.x; i < 256; i += 32) {
            float sum = 0;
            for (int j = 0; j < k; j++) sum += float(a[i / 16 * k + j]) * float(b[16 * j + i % 16]);
            d[i] = sum;
        }
    }"""
)


def rounded(result: str) -> str:
    return f"def rounded(x, bits):\n    m, e = math.frexp(x)\n    return {result}"


ANSWERS = {
    "00_start_here": {
        "your-turn-add": Answers(
            numba_add(PYTHON_GRID, f"if i < out.size: {PYTHON_SUM}"),
            {
                numba_add(PYTHON_GRID, PYTHON_SUM): "the guard",
                numba_add("cuda.threadIdx.x", f"if i < out.size: {PYTHON_SUM}"): "as many as one block has threads",
                numba_add(PYTHON_GRID, f"if i < out.size - 1: {PYTHON_SUM}"): "the last of 1000 elements",
                numba_add(PYTHON_GRID, "if i < out.size: out[i] = x[i] * y[i]"): "the expression that computes",
                "def add(x, y, out):\n    out[:] = x + y": "runs on the host",
            },
        ),
    },
    "01_vector_multiply": {
        "your-turn-rate": Answers(
            rate_of("3 * vector_bytes * loops"),
            {
                rate_of("2 * vector_bytes * loops"): "every result is 0.666667 times the right one",
                rate_of("3 * vector_bytes"): "the error differs from input to input",
                rate_of("3 * vector_bytes * loops", "nbytes * seconds"): "rate returns the wrong value",
            },
        ),
        "your-turn-multiply-add": Answers(
            cuda_multiply_add(CUDA_GRID, f"if (i < n) {CUDA_SUM}"),
            {
                cuda_multiply_add(CUDA_GRID, CUDA_SUM): "a guard missing",
                cuda_multiply_add("threadIdx.x", f"if (i < n) {CUDA_SUM}"): "as many as one block has threads",
                cuda_multiply_add(CUDA_GRID, "if (i < n) out[i] = a[i] * b[i];"): "the expression that computes",
            },
        ),
        "your-turn-most": Answers(
            most("-(-n // (grid * block))"),
            {
                most("n // (grid * block)"): "most_elements(n=5, grid=1, block=32)",
                most("-(-n // block)"): "most_elements(n=1024, grid=2, block=128)",
                most("n // (grid * block) + 1"): "most_elements(n=1024, grid=2, block=128)",
                most("1"): "the same value whatever it is given",
            },
        ),
        "your-turn-shift": Answers(
            "sectors_per_request = 5",
            {
                "sectors_per_request = 4": "4: the profile says something else",
                "sectors_per_request = 33": "33: the profile says something else",
            },
        ),
    },
    "02_memory_access": {
        "your-turn-stride": Answers(
            one_line(STRIDE, "min(32, stride * itemsize)"),
            {
                one_line(STRIDE, "min(32, 4 * stride)"): "sectors(stride=3, itemsize=8)",
                one_line(STRIDE, "stride * itemsize"): "sectors(stride=40, itemsize=4)",
                one_line(STRIDE, "32"): "the same value whatever it is given",
            },
        ),
        "your-turn-banks": Answers(
            one_line("wavefronts(stride)", "math.gcd(stride, 32)"),
            {
                one_line("wavefronts(stride)", "min(stride, 32)"): "wavefronts(stride=3)",
                one_line("wavefronts(stride)", "32 if stride % 32 == 0 else 1"): "wavefronts(stride=2)",
                one_line("wavefronts(stride)", "stride % 32"): "wavefronts(stride=3)",
            },
        ),
        "your-turn-shuffle": Answers(
            warp_sum(SHUFFLE, "if (threadIdx.x == 0) out[0] = value;"),
            {
                warp_sum(SHUFFLE.replace("16", "8"), "if (threadIdx.x == 0) out[0] = value;"): "out is wrong",
                warp_sum(SHUFFLE, "if (threadIdx.x == 31) out[0] = value;"): "out is wrong",
                warp_sum("", "atomicAdd(out, value);"): "out is wrong",
                warp_sum(SHUFFLE.replace("0xffffffff", "1"), "out[0] = value;"): "which does not name it",
                warp_sum(
                    "__shared__ float all[32]; all[threadIdx.x] = value; __syncwarp();",
                    "if (threadIdx.x == 0) { out[0] = 0; for (float x : all) out[0] += x; }",
                ): "too many shared store requests",
            },
        ),
        "your-turn-little": Answers(
            one_line(LITTLE, "bandwidth * latency / multiprocessors"),
            {
                one_line(LITTLE, "bandwidth * latency"): "the error differs from input to input",
                one_line(LITTLE, "bandwidth / latency / multiprocessors"): "in_flight returns the wrong value",
                one_line(LITTLE, "1e9 * bandwidth * latency / multiprocessors"): "a power of 1000 is missing",
            },
        ),
        "your-turn-blocks": Answers(
            one_line(BLOCKS, f"min({BY_THREADS}, {BY_REGISTERS}, {BY_SHARED})"),
            {
                one_line(BLOCKS, BY_THREADS): "blocks(threads=512, registers=32, shared_bytes=60000)",
                one_line(BLOCKS, f"min({BY_THREADS}, {BY_REGISTERS})"): "4 of 6 answers are right",
                one_line(
                    BLOCKS, f"min({BY_THREADS}, {BY_SHARED})"
                ): "blocks(threads=256, registers=64, shared_bytes=0)",
                one_line(BLOCKS, f"max({BY_THREADS}, {BY_REGISTERS}, {BY_SHARED})"): "blocks returns the wrong value",
            },
        ),
    },
    "03_warp_divergence": {
        "your-turn-efficiency": Answers(
            of_a_branch(f"{TWO_SIDES} if 0 < lanes < 32 else 1.0"),
            {
                of_a_branch(TWO_SIDES): "efficiency(lanes=32, first=10, second=90)",
                of_a_branch("lanes / 32"): "efficiency(lanes=4, first=20, second=20)",
                of_a_branch("0.5"): "the same value whatever it is given",
            },
        ),
        "your-turn-hand-over": Answers(
            hand_over(f"{SYNC}; {TAKE}; {SYNC}", f"{LEAVE}; {SYNC}; {SYNC}; {TAKE_BACK}"),
            {
                hand_over(TAKE, f"{LEAVE}; {TAKE_BACK}"): "uninitialised read",
                hand_over(f"{SYNC}; {TAKE}; {SYNC}", f"{LEAVE}; {TAKE_BACK}"): "uninitialised read",
                hand_over(f"{SYNC}; {TAKE}", f"{LEAVE}; {SYNC}; {TAKE_BACK}"): "has a data race",
                hand_over(TAKE, f"{LEAVE}; {SYNC}; {TAKE_BACK}"): "uninitialised read",
                hand_over(
                    "out[lane] = x[lane + 4]", "out[lane] = 2 * x[lane % 4 + 4]"
                ): "too many global load requests",
                SHUFFLED: "too few shared load requests",
            },
        ),
        "your-turn-max": Answers(
            warp_max("int k = 16; k > 0; k /= 2"),
            {
                warp_max("int k = 16; k > 1; k /= 2"): "out is wrong",
                warp_max("int k = 16; k > 0; k /= 2").replace("if (threadIdx.x % 32 == 0) ", ""): "a data race, too",
                warp_max("int k = 1; k < 32; k++", "max(value, x[i / 32 * 32 + k])"): "too many global load requests",
                warp_max("int k = 16; k > 0; k /= 2", "value + __shfl_down_sync(0xffffffff, value, k)"): "out is wrong",
            },
        ),
    },
    "04_matrix_multiply": {
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
                wide(result="4"): "the same value whatever it is given",
                wide(group="s // 4 % 32"): "wide_passes returns the wrong value",
                wide(lanes="range(0, 32, 16)", result="2 * sum(most)"): "wide_passes returns the wrong value",
            },
        ),
        "your-turn-busy": Answers(
            one_line(BUSY, f"m * n / (math.ceil({TILES} / sms) * sms * tile * tile)"),
            {
                one_line(BUSY, f"{TILES} / (math.ceil({TILES} / sms) * sms)"): "busy(m=16, n=256, tile=128, sms=2)",
                one_line(BUSY, f"m * n / ({TILES} * tile * tile)"): "busy(m=128, n=128, tile=128, sms=10)",
                one_line(BUSY, "1.0"): "the same value whatever it is given",
            },
        ),
    },
    "05_tensor_cores": {
        "your-turn-clock": Answers(
            one_line(CLOCK, "1e12 * tflops / (cores * flop) / 1e6"),
            {
                one_line(CLOCK, "1e12 * tflops / (cores * flop)"): "a power of 1000 is missing",
                one_line(CLOCK, "1e6 * tflops / (2 * cores * flop)"): "0.5 times the right one",
                one_line(CLOCK, "1e6 * tflops / cores"): "the error differs from input to input",
            },
        ),
        "your-turn-long": Answers(
            long_tile(),
            {
                long_tile(of_a="a + i, 16"): "d is wrong",
                long_tile(of_b="b + i, 16"): "d is wrong",
                long_tile(first="16"): "d is wrong",
                long_tile(step="8"): "misaligned matrix",
                long_tile(step="32"): "d is wrong",
                long_tile().replace("fill_fragment(sum, 0.0f);", ""): "The fragment was never filled",
                LONG_TILE_WITHOUT_TENSOR_CORES: "the tensor cores do nothing",
            },
        ),
        "your-turn-lane": Answers(
            one_line("lane_of(row, column)", "row % 8 * 4 + column // 2"),
            {
                one_line("lane_of(row, column)", "row * 4 + column // 2"): "lane_of(row=8, column=0)",
                one_line("lane_of(row, column)", "row % 8 * 4 + column % 4"): "lane_of(row=0, column=1)",
                one_line("lane_of(row, column)", "row * 2 + column // 4"): "lane_of returns the wrong value",
            },
        ),
        "your-turn-round": Answers(
            rounded("round(m * 2**bits) * 2.0 ** (e - bits)"),
            {
                rounded("math.floor(m * 2**bits) * 2.0 ** (e - bits)"): "rounded returns the wrong value",
                rounded("math.floor(m * 2**bits + 0.5) * 2.0 ** (e - bits)"): "rounded returns the wrong value",
                rounded("round(x * 2**bits) / 2**bits"): "rounded returns the wrong value",
                rounded("round(m * 2 ** (bits - 1)) * 2.0 ** (e - bits + 1)"): "rounded returns the wrong value",
            },
        ),
        "your-turn-scale": Answers(
            one_line(SCALE, "2.0 ** math.floor(math.log2(65504 / largest))"),
            {
                one_line(SCALE, "65504 / largest"): "loss_scale returns the wrong value",
                one_line(SCALE, "2.0 ** round(math.log2(65504 / largest))"): "loss_scale(largest=1.0)",
                one_line(SCALE, "2.0 ** -math.floor(math.log2(largest))"): "loss_scale(largest=1.0)",
                one_line(SCALE, "max(1, 2 ** int(math.log2(65504 / largest)))"): "loss_scale(largest=100000.0)",
            },
        ),
    },
}

"""Right and wrong answers to the tasks of lesson 01 ("Your turn"), by the id of the answer cell."""

from textwrap import dedent

from tests.support.lesson_answers import Answers


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


def numba_kernel(name: str, *body: str) -> str:
    return "\n".join([f"@cuda.jit\ndef {name}(x, out):", *(f"    {line}" for line in body)])


def reverse(index: str, guard: str = "if i < out.size:") -> str:
    return numba_kernel("reverse", "i = cuda.grid(1)", guard, f"    out[i] = x[{index}]")


FIRST_APART = "    out[i] = x[i] - x[i - 1] if i > 0 else x[i]"


def differences(first: str, step: str, body: str = FIRST_APART) -> str:
    return numba_kernel("differences", f"for i in range({first}, out.size, {step}):", body)


def scale_float4(*body: str, fours: str = "n / 4", tail: str = "i < n % 4") -> str:
    lines = "\n".join(f"        {line}" for line in body)
    return f"""\
%%cuda
extern "C" __global__ void scale_float4(const float *a, float *out, float s, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < {fours}) {{
{lines}
    }}
    if ({tail}) out[n / 4 * 4 + i] = s * a[n / 4 * 4 + i];
}}"""


def least(seconds: str) -> str:
    return f"def least_seconds(n, gbs):\n    return {seconds}"


def gpu(seconds: str) -> str:
    return f"def gpu_seconds(n, bus_gbs, memory_gbs):\n    return {seconds}"


FOUR_LOADED = "float4 x = reinterpret_cast<const float4 *>(a)[i];"
FOUR_STORED = "reinterpret_cast<float4 *>(out)[i] = make_float4(s * x.x, s * x.y, s * x.z, s * x.w);"
CUDA_GRID = "blockIdx.x * blockDim.x + threadIdx.x"
CUDA_SUM = "out[i] = a[i] * b[i] + c[i];"


def few_blocks(blocks: str) -> str:
    return f"def few_blocks(n):\n    return {blocks}"


ANSWERS = {
    "your-turn-rate": Answers(
        rate_of("3 * vector_bytes * loops"),
        {
            rate_of("2 * vector_bytes * loops"): "every result is 0.666667 times the right one",
            rate_of("3 * vector_bytes"): "the error differs from input to input",
            rate_of("3 * vector_bytes * loops", "nbytes * seconds"): "rate returns the wrong value",
            rate_of("3 * vector_bytes * loops", "nbytes // seconds"): "// rounds down",
        },
        shows="the claim: 750,000 GB/s",
    ),
    "your-turn-reverse": Answers(
        reverse("x.size - 1 - i"),
        {
            reverse("x.size - i", "if i <= out.size:").replace("cuda.grid(1)", "cuda.threadIdx.x"): "reaches past",
            reverse("x.size - 1 - i").replace("cuda.grid(1)", "cuda.threadIdx.x"): "as many as one block has threads",
            reverse("x.size - 1 - i", "if i <= out.size:"): "<= lets the size itself through",
            reverse("x.size - i"): "x[14], loaded by thread 0 of block 0, lies outside x",
            reverse("i"): "out is wrong",
            numba_kernel(
                "reverse", "for i in range(out.size):", "    out[i] = x[x.size - 1 - i]"
            ): "one thread does too much of the work",
        },
        also=(
            numba_kernel(
                "reverse",
                "i, j = cuda.grid(1), x.size - 1 - cuda.grid(1)",
                "if i <= j:",
                "    out[i], out[j] = x[j], x[i]",
            ),
        ),
    ),
    "your-turn-multiply-add": Answers(
        cuda_multiply_add(CUDA_GRID, f"if (i < n) {CUDA_SUM}"),
        {
            cuda_multiply_add(CUDA_GRID, CUDA_SUM): "out[14], stored by thread 2 of block 4, lies outside",
            cuda_multiply_add("threadIdx.x", f"if (i < n) {CUDA_SUM}"): "as many as one block has threads",
            cuda_multiply_add(CUDA_GRID, "if (i < n) out[i] = a[i] * b[i];"): "the expression that computes",
        },
    ),
    "your-turn-differences": Answers(
        differences("cuda.grid(1)", "cuda.gridsize(1)"),
        {
            differences(
                "cuda.grid(1)", "cuda.gridsize(1)", "    out[i] = x[i] - x[i - 1]"
            ): "the first element, the only wrong one",
            differences("cuda.grid(1) + 1", "cuda.gridsize(1)"): "the first at index 0",
            differences("cuda.grid(1)", "out.size"): "there are fewer threads than elements",
            differences("0", "1"): "one thread does too much of the work",
            differences("cuda.threadIdx.x", "cuda.blockDim.x"): "outputs are stored several times",
            differences("cuda.grid(1)", "cuda.blockDim.x"): "differences, 2 blocks of 4 threads; in each element",
            numba_kernel(
                "differences",
                "each = -(-out.size // cuda.gridsize(1))",
                "for i in range(cuda.grid(1) * each, min(out.size, (cuda.grid(1) + 1) * each)):",
                FIRST_APART,
            ): "too many sectors per load request",
        },
        also=(
            numba_kernel(
                "differences",
                "each = cuda.blockDim.x * -(-out.size // cuda.gridsize(1))",
                "first = cuda.blockIdx.x * each + cuda.threadIdx.x",
                "last = min((cuda.blockIdx.x + 1) * each, out.size)",
                "for i in range(first, last, cuda.blockDim.x):",
                FIRST_APART,
            ),
            numba_kernel(
                "differences",
                "if cuda.grid(1) == 0: out[0] = x[0]",
                "for i in range(cuda.grid(1) + 1, out.size, cuda.gridsize(1)):",
                "    out[i] = x[i] - x[i - 1]",
            ),
        ),
    ),
    "your-turn-most": Answers(
        most("-(-n // (grid * block))"),
        {
            most("n // (grid * block)"): "most_elements(n=5, grid=1, block=32)",
            most("-(-n // block)"): "most_elements(n=1024, grid=2, block=128)",
            most("n // (grid * block) + 1"): "most_elements(n=1024, grid=2, block=128)",
            most("round(n / (grid * block) + 0.5)"): "most_elements(n=1280, grid=2, block=128)",
            most("1"): "the same value for all",
        },
    ),
    "your-turn-scale-float4": Answers(
        scale_float4(FOUR_LOADED, FOUR_STORED),
        {
            scale_float4("for (int k = 0; k < 4; k++) out[4 * i + k] = s * a[4 * i + k];"): "requests",
            scale_float4(FOUR_LOADED, FOUR_STORED.replace("x.w", "x.z")): "out is wrong",
            scale_float4(FOUR_LOADED.replace("[i]", "[4 * i]"), FOUR_STORED): "past the end of a",
            scale_float4(FOUR_LOADED, FOUR_STORED, fours="(n + 3) / 4", tail="false"): "crosses it",
            scale_float4(FOUR_LOADED, FOUR_STORED, tail="false"): "out[28] was stored by no thread",
        },
        also=(
            scale_float4(
                FOUR_LOADED, FOUR_STORED, tail="i == 0) for (int k = n / 4 * 4; k < n; k++) if (k < n"
            ).replace("[n / 4 * 4 + i]", "[k]"),
        ),
    ),
    "your-turn-shift": Answers(
        "sectors_per_request = 5",
        {
            "sectors_per_request = 4": "4: the profile says something else",
            "sectors_per_request = '5'": "'5': the profile says something else",
            "sectors_per_request = 33": "33: the profile says something else",
        },
    ),
    "your-turn-bound": Answers(
        least("12 * n / (gbs * 1e9)"),
        {
            least("8 * n / (gbs * 1e9)"): "every result is 0.666667 times the right one",
            least("12 * n / gbs"): "a power of 1000 is missing",
            least("n / (gbs * 1e9)"): "least_seconds returns the wrong value",
        },
    ),
    "your-turn-few-blocks": Answers(
        few_blocks("n // (32 * 16)"),
        {
            few_blocks("n // 32"): "every result is 16 times the right one",
            few_blocks("n // 16"): "every result is 32 times the right one",
            few_blocks("n / 512"): "few_blocks returns a float",
            few_blocks("2048"): "few_blocks(n=512)",
        },
    ),
    "your-turn-gpu-seconds": Answers(
        gpu("12 * n / (bus_gbs * 1e9) + 12 * n / (memory_gbs * 1e9)"),
        {
            gpu("12 * n / (bus_gbs * 1e9)"): "gpu_seconds returns the wrong value",
            gpu("12 * n / bus_gbs / 1e9 + n * 1e-11"): "Does it use memory_gbs?",
            gpu("12 * n / ((bus_gbs + memory_gbs) * 1e9)"): "gpu_seconds returns the wrong value",
            gpu("8 * n / (bus_gbs * 1e9) + 12 * n / (memory_gbs * 1e9)"): "gpu_seconds returns the wrong value",
        },
    ),
}

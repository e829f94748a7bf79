"""Right and wrong answers to the tasks of lesson 05 ("Your turn"), by the id of the answer cell."""

from textwrap import dedent

from tests.support.lesson_answers import Answers, one_line

CLOCK = "clock(tflops, cores, flop)"
SCALE = "loss_scale(largest)"


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


STORED_IN_EACH_STEP = long_tile().replace(
    "mma_sync(sum, fa, fb, sum);", "mma_sync(sum, fa, fb, sum); store_matrix_sync(d, sum, 16, mem_row_major);"
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
            STORED_IN_EACH_STEP: "too many global store bytes",
            long_tile().replace("fill_fragment(sum, 0.0f);", ""): "The fragment was never filled",
            LONG_TILE_WITHOUT_TENSOR_CORES: "the tensor cores do nothing",
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
}

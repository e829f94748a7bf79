"""Right and wrong answers to the tasks of lesson 05's second notebook ("Your turn"), by the id of the answer cell."""

from tests.support.lesson_answers import Answers, one_line

PLACE, EXPECTED, PARITY = "place(row, column)", "expected(rows, columns, depth)", "parity(step, stages)"


def four_tiles(
    of_a: str = "(row + 16 * i) * n + k",
    of_b: str = "k * n + column + 16 * i",
    to: str = "(row + 16 * i) * n + column + 16 * j",
) -> str:
    return f"""\
%%cuda
#include <mma.h>
using namespace nvcuda::wmma;

__global__ void four_tiles(const half *a, const half *b, float *d, int n) {{
    int row = 32 * blockIdx.y, column = 32 * blockIdx.x;
    fragment<matrix_a, 16, 16, 16, half, row_major> fa[2];
    fragment<matrix_b, 16, 16, 16, half, row_major> fb[2];
    fragment<accumulator, 16, 16, 16, float> sum[2][2];
#pragma unroll
    for (int i = 0; i < 4; i++) fill_fragment(sum[i / 2][i % 2], 0.0f);
    for (int k = 0; k < n; k += 16) {{
#pragma unroll
        for (int i = 0; i < 2; i++) {{
            load_matrix_sync(fa[i], a + {of_a}, n);
            load_matrix_sync(fb[i], b + {of_b}, n);
        }}
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]);
    }}
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) store_matrix_sync(d + {to}, sum[i][j], n, mem_row_major);
}}"""


FOUR_TILES_IN_TURN = """\
%%cuda
#include <mma.h>
using namespace nvcuda::wmma;

__global__ void four_tiles(const half *a, const half *b, float *d, int n) {
    fragment<matrix_a, 16, 16, 16, half, row_major> fa;
    fragment<matrix_b, 16, 16, 16, half, row_major> fb;
    fragment<accumulator, 16, 16, 16, float> sum;
    for (int tile = 0; tile < 4; tile++) {
        int row = 32 * blockIdx.y + 16 * (tile / 2), column = 32 * blockIdx.x + 16 * (tile % 2);
        fill_fragment(sum, 0.0f);
        for (int k = 0; k < n; k += 16) {
            load_matrix_sync(fa, a + row * n + k, n);
            load_matrix_sync(fb, b + k * n + column, n);
            mma_sync(sum, fa, fb, sum);
        }
        store_matrix_sync(d + row * n + column, sum, n, mem_row_major);
    }
}"""

BY_ONE_THREAD = """%%cuda --gpu-architecture=sm_100a
#include <warplab/tcgen05.cuh>
__global__ void by_one_thread(const half *a, const half *b, float *d) {
    __shared__ Product<128, 32> s;
    s.begin(a, b);
    if (threadIdx.x == 0) {
        for (int k = 0; k < 64; k += 16)
            multiply<128, 32>(s.sums, k_major(s.left(), 0, k), k_major(s.right(), 0, k), k > 0);
        when_multiplied(s.done());
    }
    barrier_wait(s.done(), 0);
    for (int j = 0; j < 32; j++) d[32 * threadIdx.x + j] = load_sum(s.sums, j);
    s.end();
}"""


ANSWERS = {
    "your-turn-lane": Answers(
        one_line("lane_of(row, column)", "row % 8 * 4 + column // 2"),
        {
            one_line("lane_of(row, column)", "row * 4 + column // 2"): "lane_of(row=8, column=0)",
            one_line("lane_of(row, column)", "row % 8 * 4 + column % 4"): "lane_of(row=0, column=1)",
            one_line("lane_of(row, column)", "row * 2 + column // 4"): "lane_of returns the wrong value",
        },
    ),
    "your-turn-four-tiles": Answers(
        four_tiles(),
        {
            four_tiles(of_a="row * n + k"): "d is wrong",
            four_tiles(of_b="k * n + column"): "d is wrong",
            four_tiles(to="(row + 16 * j) * n + column + 16 * i"): "d is wrong",
            FOUR_TILES_IN_TURN: "too many global load sectors",
        },
    ),
    "your-turn-place": Answers(
        one_line(PLACE, "128 * row + 16 * ((column // 8) ^ (row % 8)) + 2 * (column % 8)"),
        {
            one_line(PLACE, "128 * row + 2 * column"): "place(row=1, column=0)",
            one_line(PLACE, "128 * row + 16 * ((column // 8) ^ (row % 8))"): "place(row=0, column=9)",
            one_line(PLACE, "128 * row + 16 * ((column // 8) ^ row) + 2 * (column % 8)"): "place(row=8, column=8)",
            one_line(PLACE, "128 * row + 2 * (column ^ (row % 8))"): "place(row=1, column=0)",
        },
    ),
    "your-turn-expect": Answers(
        one_line(EXPECTED, "2 * depth * (rows + columns)"),
        {
            one_line(EXPECTED, "depth * (rows + columns)"): "0.5 times the right one",
            one_line(EXPECTED, "2 * (rows * columns)"): "the error differs from input to input",
            one_line(EXPECTED, "2 * 64 * (rows + columns)"): "expected(rows=128, columns=256, depth=32)",
            one_line(EXPECTED, "2 * depth * (rows + 256)"): "expected(rows=128, columns=128, depth=64)",
            one_line(EXPECTED, "49152"): "expected(rows=128, columns=256, depth=32)",
        },
    ),
    "your-turn-parity": Answers(
        one_line(PARITY, "step // stages % 2"),
        {
            one_line(PARITY, "step % 2"): "parity returns the wrong value",
            one_line(PARITY, "step // stages"): "parity returns the wrong value",
            one_line(PARITY, "(step // stages + 1) % 2"): "parity returns the wrong value",
            one_line(PARITY, "step % stages % 2"): "parity returns the wrong value",
        },
    ),
    "your-turn-by-one-thread": Answers(
        BY_ONE_THREAD,
        {
            BY_ONE_THREAD.replace("k > 0", "false"): "d is wrong",
            BY_ONE_THREAD.replace("k > 0", "true"): "A first product must not add",
            BY_ONE_THREAD.replace("(s.right(), 0, k)", "(s.right(), 0, 0)"): "d is wrong",
            BY_ONE_THREAD.replace("k += 16", "k += 32"): "d is wrong",
            BY_ONE_THREAD.replace("barrier_wait(s.done(), 0);", ""): "may be under way",
        },
    ),
}

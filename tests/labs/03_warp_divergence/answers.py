"""Right and wrong answers to the tasks of lesson 03 ("Your turn"), by the id of the answer cell."""

from textwrap import dedent

from tests.support.lesson_answers import Answers


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
SYNC = "cuda.syncwarp()"
LEAVE = "left[lane] = x[lane]"
TAKE_BACK = "out[lane] = left[lane % 4]"
SHUFFLED = dedent(
    """\
    @cuda.jit
    def hand_over(x, out):
        lane = cuda.laneid
        v = cuda.shfl_sync(ALL, x[lane], 4 + lane % 4)
        out[lane] = v if lane < 4 else 2 * v"""
)
TAKE = "out[lane] = left[lane + 4]; left[lane] = 2 * out[lane]"

ANSWERS = {
    "your-turn-efficiency": Answers(
        of_a_branch(f"{TWO_SIDES} if 0 < lanes < 32 else 1.0"),
        {
            of_a_branch(TWO_SIDES): "efficiency(lanes=32, first=10, second=90)",
            of_a_branch("lanes / 32"): "efficiency(lanes=4, first=20, second=20)",
            of_a_branch("0.5"): "the same value for all",
        },
    ),
    "your-turn-hand-over": Answers(
        hand_over(f"{SYNC}; {TAKE}; {SYNC}", f"{LEAVE}; {SYNC}; {SYNC}; {TAKE_BACK}"),
        {
            hand_over(TAKE, f"{LEAVE}; {TAKE_BACK}"): "uninitialised read",
            hand_over(f"{SYNC}; {TAKE}; {SYNC}", f"{LEAVE}; {TAKE_BACK}"): "uninitialised read",
            hand_over(f"{SYNC}; {TAKE}", f"{LEAVE}; {SYNC}; {TAKE_BACK}"): "has a data race",
            hand_over(TAKE, f"{LEAVE}; {SYNC}; {TAKE_BACK}"): "uninitialised read",
            hand_over("out[lane] = x[lane + 4]", "out[lane] = 2 * x[lane % 4 + 4]"): "too many global load requests",
            SHUFFLED: "too few shared load requests",
        },
    ),
    "your-turn-max": Answers(
        warp_max("int k = 16; k > 0; k /= 2"),
        {
            warp_max("int k = 16; k > 1; k /= 2"): "out is wrong",
            warp_max("int k = 16; k > 0; k /= 2").replace("if (threadIdx.x % 32 == 0) ", ""): "also a data race",
            warp_max("int k = 1; k < 32; k++", "max(value, x[i / 32 * 32 + k])"): "too many global load requests",
            warp_max("int k = 16; k > 0; k /= 2", "value + __shfl_down_sync(0xffffffff, value, k)"): "out is wrong",
        },
    ),
}

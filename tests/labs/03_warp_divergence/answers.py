"""Right and wrong answers to the tasks of lesson 03 ("Your turn"), by the id of the answer cell."""

from textwrap import dedent

from tests.support.lesson_answers import Answers


def hand_over(readers: str, others: str) -> str:
    return dedent(
        f"""\
        @cuda.jit
        def hand_over(x, out):
            left = cuda.shared.array(32, float32)
            lane = cuda.laneid
            if lane < 4:
                {readers}
            else:
                {others}"""
    )


def warp_max(loop: str, there: str = "t + k < blockDim.x", step: str = "max(value, other)") -> str:
    return dedent(
        f"""\
        %%cuda
        __global__ void warp_max(const int *x, int *out) {{
            int t = threadIdx.x, value = x[t];
            for ({loop}) {{
                int other = __shfl_down_sync(0xffffffff, value, k);
                if ({there}) value = {step};
            }}
            if (t % 32 == 0) out[t / 32] = value;
        }}"""
    )


def running(there: str = "lane >= k", step: str = "max(value, other)", steps: str = "int k = 1; k < 32; k *= 2") -> str:
    return dedent(
        f"""\
        %%cuda
        __global__ void running(const int *x, int *out) {{
            int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, value = x[i];
            for ({steps}) {{
                int other = __shfl_up_sync(0xffffffff, value, k);
                if ({there}) value = {step};
            }}
            out[i] = value;
        }}"""
    )


def deal(element: str) -> str:
    return dedent(
        f"""\
        @cuda.jit
        def deal(x, out):
            i = cuda.grid(1)
            e = {element}
            y = x[e]
            if e % 4 == 0:
                for _ in range(50):
                    y = np.float32(0.5) * y + np.float32(1)
            else:
                for _ in range(50):
                    y = np.float32(0.25) * y - np.float32(1)
            out[e] = y"""
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
        loaded = x[lane] if lane > 3 else np.float32(0)
        v = cuda.shfl_sync(ALL, loaded, 4 + lane % 4)
        out[lane] = v if lane < 4 else 2 * v"""
)
EVERYBODY_LOADS = dedent(
    """\
    @cuda.jit
    def hand_over(x, out):
        left = cuda.shared.array(32, float32)
        lane = cuda.laneid
        left[lane] = x[lane]
        cuda.syncwarp()
        if lane < 4:
            out[lane] = left[lane + 4]
        else:
            out[lane] = 2 * left[4 + lane % 4]"""
)
TAKE = "out[lane] = left[lane + 4]; left[lane] = 2 * out[lane]"


def split(*body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body)
    return f"""\
%%cuda
__global__ void split(const float *x, float *a, float *b, float *y) {{
    __shared__ float result;
    int t = threadIdx.x;
{lines}
}}"""


def numba_kernel(name: str, *body: str) -> str:
    return "\n".join([f"@cuda.jit\ndef {name}(x, out):", "    i = cuda.grid(1)", *(f"    {line}" for line in body)])


def alike(value: str) -> str:
    return f"""\
%%cuda
__global__ void alike(const int *x, int *out) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = {value};
}}"""


def trips(returned: str) -> str:
    return f"def loop_efficiency(trips):\n    return {returned}"


WARPS = "trips[k : k + 32] for k in range(0, len(trips), 32)"
IN_ORDER = (
    "if (t < 4) a[t] *= 2; else result = x[4] + 1;",
    "__syncwarp();",
    "if (t < 4) b[t] = result; else y[t] = -y[t];",
)


def one_way(step: str = "step = np.float32(1) if (i >> shift) % 2 == 0 else np.float32(2)", passes: str = "400") -> str:
    return f"""\
@cuda.jit
def one_way(x, out, shift):
    i = cuda.grid(1)
    y = x[i]
    {step}
    for _ in range({passes}):
        y = np.float32(0.5) * y + step
    out[i] = y"""


TWO_LOOPS = """\
@cuda.jit
def one_way(x, out, shift):
    i = cuda.grid(1)
    y = x[i]
    if (i >> shift) % 2 == 0:
        for _ in range(400):
            y = np.float32(0.5) * y + np.float32(1)
    else:
        for _ in range(400):
            y = np.float32(0.5) * y + np.float32(2)
    out[i] = y"""
ONE_THREAD = """\
@cuda.jit
def one_way(x, out, shift):
    if cuda.grid(1) == 0:
        for i in range(x.size):
            y = x[i]
            step = np.float32(1) if (i >> shift) % 2 == 0 else np.float32(2)
            for _ in range(400):
                y = np.float32(0.5) * y + step
            out[i] = y"""


ANSWERS = {
    "your-turn-efficiency": Answers(
        of_a_branch(f"{TWO_SIDES} if 0 < lanes < 32 else 1.0"),
        {
            of_a_branch(TWO_SIDES): "efficiency(lanes=32, first=10, second=90)",
            of_a_branch("lanes / 32"): "efficiency(lanes=4, first=20, second=20)",
            of_a_branch("0.5"): "the same value for all",
        },
    ),
    "your-turn-one-way": Answers(
        one_way(),
        {
            one_way("step = np.float32(1)"): "out is wrong",
            one_way("step = np.float32(2) if (i >> shift) % 2 == 0 else np.float32(1)"): "out is wrong",
            one_way(passes="399"): "too few",
            one_way("step = np.float32(2)"): "out is wrong",
            TWO_LOOPS: "too many warp instructions",
            ONE_THREAD: "one_way does not end",
        },
        also=(one_way("step = (np.float32(1), np.float32(2))[(i >> shift) % 2]"),),
    ),
    "your-turn-deal": Answers(
        deal("i % 32 * (cuda.gridsize(1) // 32) + i // 32"),
        {
            deal("i"): "too many divergent branches",
            deal("i // 32 * 32 + i % 4 * 8 + i % 32 // 4"): "too many divergent branches",
            deal("i % 32 * 4 + i // 32"): "out",
            deal("cuda.laneid * (cuda.blockDim.x // 32) + i // 32"): "out",
        },
    ),
    "your-turn-split": Answers(
        split(*IN_ORDER),
        {
            split(IN_ORDER[0], IN_ORDER[2]): "uninitialised read",
            split(
                "if (t < 4) { a[t] *= 2; __syncwarp(); b[t] = result; }",
                "else { result = x[4] + 1; __syncwarp(); y[t] = -y[t]; }",
            ): "With one program counter the kernel gets stuck.",
            split(*IN_ORDER[:2], "if (t < 4) b[t] = result;"): "y is wrong",
            split("if (t < 4) { a[t] *= 2; b[t] = x[4] + 1; } else { y[t] = -y[t]; }").replace(
                "__shared__ float result;", ""
            ): "too few shared load requests",
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
            EVERYBODY_LOADS: "too many global load bytes",
        },
    ),
    "your-turn-trips": Answers(
        trips(f"sum(trips) / (32 * sum(max(w) for w in ({WARPS})))"),
        {
            trips("sum(trips) / len(trips) / max(trips)"): "loop_efficiency returns the wrong value",
            trips(f"sum(trips) / sum(len(w) * max(w) for w in ({WARPS}))"): "loop_efficiency returns the wrong value",
            trips("1.0"): "the same value for all",
        },
    ),
    "your-turn-running": Answers(
        running(),
        {
            running(steps="int k = 1; k < 16; k *= 2"): "out is wrong",
            running(step="value + other"): "out is wrong",
            running().replace("shfl_up", "shfl_down"): "out is wrong",
            running(steps="int k = 1; k < 32; k++"): "instructions",
        },
    ),
    "your-turn-max": Answers(
        warp_max("int k = 16; k > 0; k /= 2"),
        {
            warp_max("int k = 16; k > 0; k /= 2", there="true"): "which its warp does not have",
            warp_max("int k = 16; k > 1; k /= 2"): "out is wrong",
            warp_max("int k = 16; k > 0; k /= 2").replace("if (t % 32 == 0) ", ""): "also a data race",
            warp_max("int k = 1; k < 32; k++", step="max(value, x[min(t / 32 * 32 + k, blockDim.x - 1)])"): "too",
            warp_max("int k = 16; k > 0; k /= 2", step="value + other"): "out is wrong",
        },
    ),
    "your-turn-positive": Answers(
        numba_kernel(
            "positive",
            "bits = cuda.ballot_sync(ALL, x[i] > 0)",
            "if cuda.laneid == 0:",
            "    out[i // 32] = cuda.popc(bits)",
        ),
        {
            numba_kernel(
                "positive",
                "n = np.int32(x[i] > 0)",
                "for k in range(5):",
                "    n += cuda.shfl_down_sync(ALL, n, 16 >> k)",
                "if cuda.laneid == 0:",
                "    out[i // 32] = n",
            ): "instructions",
            numba_kernel(
                "positive",
                "bits = cuda.ballot_sync(ALL, x[i] < 0)",
                "if cuda.laneid == 0:",
                "    out[i // 32] = cuda.popc(bits)",
            ): "out is wrong",
            numba_kernel(
                "positive",
                "if cuda.laneid == 0:",
                "    n = 0",
                "    for k in range(32):",
                "        n += x[i + k] > 0",
                "    out[i // 32] = n",
            ): "too many",
        },
        also=(
            numba_kernel(
                "positive",
                "bits = cuda.ballot_sync(ALL, x[i] > 0)",
                "if cuda.laneid == 0:",
                "    warps = cuda.blockDim.x // 32",
                "    out[cuda.blockIdx.x * warps + cuda.threadIdx.x // 32] = cuda.popc(bits)",
            ),
        ),
    ),
    "your-turn-alike": Answers(
        alike("__popc(__match_any_sync(0xffffffff, x[i]))"),
        {
            alike("__match_any_sync(0xffffffff, x[i])"): "out is wrong",
            alike("__popc(__ballot_sync(0xffffffff, x[i]))"): "out is wrong",
            alike("__ffs(__match_any_sync(0xffffffff, x[i]))"): "out is wrong",
        },
    ),
}

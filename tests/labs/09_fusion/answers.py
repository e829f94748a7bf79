"""Right and wrong answers to the tasks of lesson 09 ("Your turn"), by the id of the answer cell."""

from textwrap import dedent

from tests.support.lesson_answers import Answers, one_line

SAVED = "saved_bytes(elements, layers, itemsize)"
MAY_FUSE = "may_fuse(graph, tensor)"
STEP = "step(value, scale)"
TILES = "loaded(pixels, filters, depth, tile)"
PEAK = "peak(tensors)"
IN_FLIGHT = "in_flight(images_per_second, seconds)"
BATCH = "best_rate(runs, limit)"


def fuse_relu(
    when: str = 'cbr and cbr.op == "cbr" and graph.only_reader(relu.inputs[0])',
    fused: str = "replace(cbr, outputs=relu.outputs).with_attributes(relu=True)",
    nodes: str = "[fused if n is cbr else n for n in graph.nodes if n is not relu]",
) -> str:
    return dedent(
        f"""\
        def fuse_relu(graph):
            for relu in [node for node in graph.nodes if node.op == "relu"]:
                cbr = graph.only_writer(relu.inputs[0])
                if {when}:
                    fused = {fused}
                    graph = graph.rebuilt({nodes})
            return graph"""
    )


def into_slice(
    value: str = "fmaxf(sum[i] + bias[i % k], 0)",
    at: str = "i / k * channels + start + i % k",
    guard: str = "if (i < n)",
) -> str:
    return dedent(
        f"""\
        %%cuda
        __global__ void into_slice(const float *sum, const float *bias, float *y,
                                   int k, int start, int channels, int n) {{
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            {guard} y[{at}] = {value};
        }}"""
    )


def dot(
    product: str = "__dp4a(x[i * words + j], w[j], sum)", row: str = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
) -> str:
    return dedent(
        f"""\
        %%cuda
        __global__ void dot(const int *x, const int *w, int *y, int words, int n) {{
            {row}
            if (i < n) {{
                int sum = 0;
                for (int j = 0; j < words; j++) sum = {product};
                y[i] = sum;
            }}
        }}"""
    )


def four_bits(
    word: str = "w[(8 * g + j) * n + i]",
    weight: str = "(int)(word >> 4 * t & 15) - 8",
    at: str = "64 * g + 8 * j + t",
    add: str = "sum += part * scales[g * n + i];",
    guard: str = "if (i < n)",
) -> str:
    return dedent(
        f"""\
        %%cuda
        __global__ void four_bits(const unsigned *w, const float *scales, const float *x, float *y,
                                  int groups, int n) {{
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            {guard} {{
                float sum = 0;
                for (int g = 0; g < groups; g++) {{
                    float part = 0;
                    for (int j = 0; j < 8; j++) {{
                        unsigned word = {word};
                        for (int t = 0; t < 8; t++) part += ({weight}) * x[{at}];
                    }}
                    {add}
                }}
                y[i] = sum;
            }}
        }}"""
    )


ONE_THREAD_FOR_ALL = dedent(
    """\
    %%cuda
    __global__ void dot(const int *x, const int *w, int *y, int words, int n) {
        if (blockIdx.x + threadIdx.x == 0)
            for (int i = 0; i < n; i++) {
                int sum = 0;
                for (int j = 0; j < words; j++) sum = __dp4a(x[i * words + j], w[j], sum);
                y[i] = sum;
            }
    }"""
)
IN_TURNS = into_slice(guard="for (int t = 0; t < 128; t++) if (threadIdx.x == t && i < n)")
A_BLOCK_FOR_ALL = into_slice(guard="if (blockIdx.x == 0) for (; i < n; i += blockDim.x)")

ANSWERS = {
    "your-turn-saved": Answers(
        one_line(SAVED, "2 * layers * elements * itemsize"),
        {
            one_line(SAVED, "layers * elements * itemsize"): "0.5 times the right one",
            one_line(SAVED, "2 * elements * itemsize"): "saved_bytes returns the wrong value",
            one_line(SAVED, "2 * layers * elements"): "saved_bytes returns the wrong value",
            one_line(SAVED, "2 * (layers + 1) * elements * itemsize"): "saved_bytes returns the wrong value",
        },
    ),
    "your-turn-may-fuse": Answers(
        one_line(MAY_FUSE, "len(graph.readers(tensor)) == 1 and tensor not in graph.outputs"),
        {
            one_line(MAY_FUSE, "True"): "who else needs this tensor",
            one_line(MAY_FUSE, "len(graph.readers(tensor)) == 1"): "outputs a, a_relu",
            one_line(MAY_FUSE, "len(graph.readers(tensor)) <= 1 and tensor not in graph.outputs[:0]"): "read by nobody",
            one_line(
                MAY_FUSE, "len({n.name for n in graph.readers(tensor)}) == 1 and tensor not in graph.outputs"
            ): "read by doubled (add), doubled (add)",
            one_line(MAY_FUSE, "len(graph.readers(tensor))"): "may_fuse returns the wrong type",
            one_line(MAY_FUSE, "graph.reader(tensor)"): "may_fuse raises AttributeError",
        },
    ),
    "your-turn-fuse-relu": Answers(
        fuse_relu(),
        {
            "def fuse_relu(graph):\n    return graph": "a cbr could still take a_relu, b_relu",
            fuse_relu(when='cbr and cbr.op == "cbr"'): "fuse_relu makes a graph that cannot run",
            fuse_relu(when="cbr and graph.only_reader(relu.inputs[0])"): "add does not take relu",
            fuse_relu(fused="replace(cbr, outputs=relu.outputs)"): "the graph computes something else",
            fuse_relu(fused="cbr.with_attributes(relu=True)"): "fuse_relu makes a graph that cannot run",
            fuse_relu(nodes="[n for n in graph.nodes if n is not relu]"): "fuse_relu makes a graph that cannot run",
            fuse_relu().replace("return graph", "pass"): "fuse_relu returns nothing",
        },
    ),
    "your-turn-slice": Answers(
        into_slice(),
        {
            A_BLOCK_FOR_ALL: "one thread does too much of the work",
            IN_TURNS: "too many warp instructions",
            into_slice(guard=""): "past the end of",
            into_slice(at="i + start"): "y is wrong",
            into_slice(at="i / k * channels + i % k"): "y is wrong",
            into_slice(at="i / k * k + start + i % k"): "y is wrong",
            into_slice("fmaxf(sum[i] + bias[i / k], 0)"): "bias",
            into_slice("sum[i] + bias[i % k]"): "only elements that should be 0 are wrong: is a limit missing",
            into_slice("fmaxf(sum[i], 0) + bias[i % k]"): "y is wrong",
        },
    ),
    "your-turn-tiles": Answers(
        one_line(TILES, "-(-pixels // tile) * -(-filters // tile) * 2 * tile * depth"),
        {
            one_line(TILES, "pixels // tile * (filters // tile) * 2 * tile * depth"): "loaded returns the wrong value",
            one_line(TILES, "-(-pixels // tile) * -(-filters // tile) * tile * depth"): "0.5 times the right one",
            one_line(TILES, "-(-pixels // tile) * -(-filters // tile) * tile**2 * depth"): "loaded returns the wrong",
        },
        shows="1024 × 64, in tiles of 64:  16 blocks load   294,912",
    ),
    "your-turn-step": Answers(
        one_line(STEP, "max(-127, min(127, round(value / scale)))"),
        {
            one_line(STEP, "round(value / scale)"): "only answers that should be -127 or 127 are wrong",
            one_line(STEP, "max(-127, min(127, int(value / scale)))"): "nearer to 0 by 1: int cuts off",
            one_line(STEP, "max(-128, min(127, round(value / scale)))"): "step returns the wrong value",
            one_line(STEP, "max(-127, min(127, round(value * scale)))"): "step returns the wrong value",
            one_line(STEP, "min(127, abs(round(value / scale)))"): "step returns the wrong value",
        },
    ),
    "your-turn-dp4a": Answers(
        dot(),
        {
            ONE_THREAD_FOR_ALL: "one thread does too much of the work",
            dot("sum + x[i * words + j] * w[j]"): "y is wrong",
            dot("__dp4a(x[i + j], w[j], sum)"): "y is wrong",
            dot("__dp4a(x[i * words + j], w[j], 0)"): "y is wrong",
            dot("__dp4a((unsigned)x[i * words + j], (unsigned)w[j], (unsigned)sum)"): "signed bytes taken for unsigned",
            dot().replace("int sum = 0;", "int sum;"): "dot adds to what was never set",
            dot(row="int i = threadIdx.x;"): "dot",
        },
    ),
    "your-turn-four": Answers(
        four_bits(),
        {
            four_bits(weight="(word >> 4 * t & 15) - 8"): "does an unsigned number go below 0",
            four_bits(weight="(int)(word >> 4 * t & 15)"): "y is wrong",
            four_bits(weight="(int)(word << 28 - 4 * t) >> 28"): "y is wrong",
            four_bits(weight="(int)(word >> 28 - 4 * t & 15) - 8"): "y is wrong",
            four_bits(word="w[i * 8 * groups + 8 * g + j]"): "y is wrong",
            four_bits(at="8 * j + t"): "y is wrong",
            four_bits(add="sum += part * scales[i];"): "y is wrong",
            four_bits(add="sum += part;"): "y is wrong",
            four_bits(guard="for (i = 0; i < n; i++)"): "four_bits does not end",
            four_bits(
                guard="for (int turn = 0; turn < 32; turn++) if (threadIdx.x % 32 == turn && i < n)"
            ): "too many global load requests",
        },
        also=(four_bits(weight="((int)(word >> 4 * t & 15) - 8) * scales[g * n + i]", add="sum += part;"),),
    ),
    "your-turn-peak": Answers(
        one_line(PEAK, "max(sum(b for f, l, b in tensors if f <= t <= l) for t in range(20))"),
        {
            one_line(PEAK, "sum(b for f, l, b in tensors)"): "peak returns the wrong value",
            one_line(PEAK, "max(b for f, l, b in tensors)"): "peak returns the wrong value",
            one_line(PEAK, "max(sum(b for f, l, b in tensors if f <= t < l) for t in range(20))"): "peak returns",
            one_line(PEAK, "max(sum(b for f, l, b in tensors if f < t <= l) for t in range(20))"): "peak returns",
        },
    ),
    "your-turn-in-flight": Answers(
        one_line(IN_FLIGHT, "images_per_second * seconds"),
        {
            one_line(IN_FLIGHT, "images_per_second / seconds"): "in_flight returns the wrong value",
            one_line(IN_FLIGHT, "seconds / images_per_second"): "in_flight returns the wrong value",
            one_line(IN_FLIGHT, "images_per_second * seconds * 1000"): "a power of 1000",
            one_line(IN_FLIGHT, "round(images_per_second * seconds)"): "in_flight returns the wrong value",
        },
        shows="Claim: 5707 images/s at 7 ms each: 39.9 in flight",
    ),
    "your-turn-batch": Answers(
        one_line(BATCH, "max((b / s for b, s in runs if s <= limit), default=0)"),
        {
            one_line(BATCH, "max(b / s for b, s in runs)"): "best_rate returns the wrong value",
            one_line(BATCH, "max((b / s for b, s in runs if s < limit), default=0)"): "best_rate returns",
            one_line(BATCH, "max((b for b, s in runs if s <= limit), default=0)"): "best_rate returns the wrong value",
            one_line(BATCH, "([b / s for b, s in runs if s <= limit] or [0])[-1]"): "best_rate returns",
            one_line(BATCH, "max(b / s for b, s in runs if s <= limit)"): "best_rate raises ValueError",
        },
        shows="FP16 within 7 ms: 4856 images/s",
    ),
}

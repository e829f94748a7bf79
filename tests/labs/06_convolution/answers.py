"""Right and wrong answers to the tasks of lesson 06 ("Your turn"), by the id of the answer cell."""

from textwrap import dedent

from tests.support.lesson_answers import Answers, one_line

OUTPUTS = "outputs(size, window, padding, stride, dilation)"
SAVING = "saving(m, r)"
READERS = "readers(h, window, padding, stride, outputs)"
FOLD = "folded_bias(bias, gamma, beta, mean, deviation)"
ROW, COLUMN = "p * stride + r - padding", "q * stride + s - padding"


def intensity(depth: str = "c // groups * r * s", flop: str = "2 * n * k * p * q * depth", w: str = "k * depth") -> str:
    return dedent(
        f"""\
        def intensity(n, c, h, w, k, r, s, p, q, groups, itemsize):
            depth = {depth}
            return {flop} / (itemsize * (n * c * h * w + {w} + n * k * p * q))"""
    )


def padded(
    row: str = ROW,
    column: str = COLUMN,
    guard: str = "0 <= i < x.shape[2] and 0 <= j < x.shape[3]",
    mine: str = "q < y.shape[3] and p < y.shape[2] and n < y.shape[0]",
    c: str = "range(w.shape[1])",
    product: str = "x[n, c, i, j] * w[k, c, r, s]",
) -> str:
    return dedent(
        f"""\
        @cuda.jit
        def padded(x, w, y, padding, stride):
            q, p, nk = cuda.grid(3)
            n, k = nk // y.shape[1], nk % y.shape[1]
            if {mine}:
                total = float32(0)
                for c in {c}:
                    for r in range(w.shape[2]):
                        for s in range(w.shape[3]):
                            i, j = {row}, {column}
                            if {guard}:
                                total += {product}
                y[n, k, p, q] = total"""
    )


# Lanes that take turns: each does its own work, but no two at a time.
IN_TURNS = padded().replace("    if q <", "    for turn in range(16):\n      if cuda.threadIdx.x == turn and q <")
A_ROW_PER_THREAD = dedent(
    f"""\
    @cuda.jit
    def padded(x, w, y, padding, stride):
        q, p, nk = cuda.grid(3)
        n, k = nk // y.shape[1], nk % y.shape[1]
        if q == 0 and p < y.shape[2] and n < y.shape[0]:
            for q in range(y.shape[3]):
                total = float32(0)
                for c in range(w.shape[1]):
                    for r in range(w.shape[2]):
                        for s in range(w.shape[3]):
                            i, j = {ROW}, {COLUMN}
                            if 0 <= i < x.shape[2] and 0 <= j < x.shape[3]:
                                total += x[n, c, i, j] * w[k, c, r, s]
                y[n, k, p, q] = total"""
)
IN_ONE_THREAD = (
    A_ROW_PER_THREAD.replace("if q == 0 and p < y.shape[2] and n < y.shape[0]:", "if q + p + nk == 0:")
    .replace("for q in range(y.shape[3])", "for i in range(y.size)")
    .replace(
        "total = float32(0)",
        "q, p, nk = i % y.shape[3], i // y.shape[3] % y.shape[2], i // y.shape[3] // y.shape[2]\n"
        "            n, k, total = nk // y.shape[1], nk % y.shape[1], float32(0)",
    )
)


def my_place(
    taps: str = "divmod(tap, window)",
    pixel: str = "divmod(column, outputs)",
    inside: str = "0 <= i < size and 0 <= j < size",
    at: str = "(c * size + i) * size + j",
) -> str:
    return dedent(
        f"""\
        def my_place(row, column, size, window, outputs, padding, stride):
            c, tap = divmod(row, window * window)
            r, s = {taps}
            p, q = {pixel}
            i, j = {ROW}, {COLUMN}
            return {at} if {inside} else -1"""
    )


def choose(
    able: str = 'row["status"] == "ok" and row["workspace_bytes"] <= limit_bytes',
    best: str = "min",
    by: str = "seconds",
) -> str:
    return dedent(
        f"""\
        def choose(rows, limit_bytes):
            able = [row for row in rows if {able}]
            return {best}(able, key=lambda row: row["{by}"])["id"]"""
    )


def epilogue(
    value: str = "sum[i] + bias[i % k]", guard: str = "if (i < n)", relu: str = "value < 0 ? 0 : value"
) -> str:
    return dedent(
        f"""\
        %%cuda
        #include <cuda_fp16.h>
        __global__ void epilogue(const float *sum, const float *bias, half *y, int k, int n) {{
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            {guard} {{
                float value = {value};
                y[i] = {relu};
            }}
        }}"""
    )


A_BLOCK_FOR_ALL = epilogue(guard="if (blockIdx.x == 0) for (; i < n; i += blockDim.x)")


ANSWERS = {
    "your-turn-outputs": Answers(
        one_line(OUTPUTS, "(size + 2 * padding - dilation * (window - 1) - 1) // stride + 1"),
        {
            one_line(OUTPUTS, "(size + 2 * padding - dilation * (window - 1) - 1) // stride"): "too small by 1",
            one_line(OUTPUTS, "(size + padding - dilation * (window - 1) - 1) // stride + 1"): "padding=1",
            one_line(OUTPUTS, "(size + 2 * padding - dilation * window) // stride + 1"): "dilation=2",
            one_line(OUTPUTS, "math.ceil((size + 2 * padding - dilation * (window - 1)) / stride)"): "right for 8",
        },
    ),
    "your-turn-intensity": Answers(
        intensity(),
        {
            intensity(flop="n * k * p * q * depth"): "0.5 times the right one",
            intensity(depth="c * r * s"): "intensity(n=2, c=6",
            intensity(w="k * c * r * s"): "intensity(n=2, c=6",
            intensity(flop="2 * n * k * h * w * depth"): "intensity(n=2, c=6",
        },
    ),
    "your-turn-padded": Answers(
        padded(),
        {
            A_ROW_PER_THREAD: "one thread does too much of the work",
            IN_ONE_THREAD: "one thread does too much of the work",
            IN_TURNS: "too many warp instructions",
            padded(product="float32(int(x[n, c, i, j]) * int(w[k, c, r, s]))"): "y is wrong",
            padded(guard="i < x.shape[2] and j < x.shape[3]"): "padded",
            padded(guard="True"): "padded",
            padded(row="p * stride + r", column="q * stride + s"): "y is wrong",
            padded(row="p + r - padding", column="q + s - padding"): "y is wrong",
            padded(c="range(1)"): "y is wrong",
            padded(mine="n < y.shape[0]"): "past the end of y",
        },
    ),
    "your-turn-place": Answers(
        my_place(),
        {
            my_place(taps="divmod(tap, window)[::-1]"): "my_place returns the wrong value",
            my_place(pixel="divmod(column, size)"): "my_place returns the wrong value",
            my_place(inside="i < size and j < size"): "my_place returns the wrong value",
            my_place(inside="True"): "my_place returns the wrong value",
            my_place(at="c * size + i * size + j"): "my_place returns the wrong value",
        },
    ),
    "your-turn-saving": Answers(
        one_line(SAVING, "(m * r / (m + r - 1)) ** 2"),
        {
            one_line(SAVING, "m * r / (m + r - 1)"): "saving returns the wrong value",
            one_line(SAVING, "((m + r - 1) / (m * r)) ** 2"): "saving returns the wrong value",
            one_line(SAVING, "(m * r) ** 2 / (m + r) ** 2"): "saving returns the wrong value",
        },
        shows="F(4 × 4, 5 × 5): 6.25",
    ),
    "your-turn-choose": Answers(
        choose(),
        {
            choose(able='row["status"] == "ok"'): "choose returns the wrong value",
            choose(able='row["status"] == "ok" and row["workspace_bytes"] < limit_bytes'): "choose",
            choose(able='row["workspace_bytes"] <= limit_bytes'): "choose",
            choose(
                able='row["seconds"] is not None and row["workspace_bytes"] <= limit_bytes'
            ): "choose returns the wrong",
            choose(best="max"): "choose returns the wrong value",
            choose(by="workspace_bytes"): "choose returns the wrong value",
            choose(by="id"): "choose returns the wrong value",
        },
    ),
    "your-turn-epilogue": Answers(
        epilogue(),
        {
            A_BLOCK_FOR_ALL: "one thread does too much of the work",
            epilogue(guard="for (int t = 0; t < 64; t++) if (threadIdx.x == t && i < n)"): "too many warp instructions",
            epilogue(guard=""): "past the end of y",
            epilogue("sum[i] + bias[i / k]"): "past the end of bias",
            epilogue("fmaxf(sum[i], 0) + bias[i % k]", relu="value"): "y is wrong",
            epilogue(relu="value"): "y is wrong",
            epilogue("__half2float(__float2half(sum[i])) + bias[i % k]"): "y is wrong",
        },
    ),
    "your-turn-readers": Answers(
        one_line(READERS, "sum(h + padding - p * stride in range(window) for p in range(outputs))"),
        {
            one_line(READERS, "window"): "readers returns the wrong value",
            one_line(
                READERS, "sum(h + padding - p * stride in range(window) for p in range(h + padding + 1))"
            ): "outputs",
            one_line(READERS, "sum((h + padding - r) % stride == 0 for r in range(window))"): "outputs",
            one_line(READERS, "sum(h - p * stride in range(window) for p in range(outputs))"): "padding=1",
        },
    ),
    "your-turn-fold": Answers(
        one_line(FOLD, "(bias - mean) * gamma / deviation + beta"),
        {
            one_line(FOLD, "bias * gamma / deviation + beta"): "folded_bias returns the wrong value",
            one_line(FOLD, "bias - mean * gamma / deviation + beta"): "folded_bias returns the wrong value",
            one_line(FOLD, "(bias - mean + beta) * gamma / deviation"): "folded_bias returns the wrong value",
        },
    ),
}

"""Right and wrong answers to the tasks of lesson 08 ("Your turn"), by the id of the answer cell."""

from textwrap import dedent

from tests.support.lesson_answers import Answers, one_line


def kept(result: str) -> str:
    return one_line("kept_mib(layers, batch, width)", result)


def recompute(run: str, inner: str = "f(*arguments)", gradient: str = "again, arguments, dy") -> str:
    return dedent(
        f"""\
        def recompute(f):
            @tf.custom_gradient
            def g(*arguments):
                def backward(dy):
                    with tf.GradientTape() as tape:
                        tape.watch(arguments)
                        again = {inner}
                    return tape.gradient({gradient})
                return {run}, backward
            return g"""
    )


def peak(single: str, several: str) -> str:
    return dedent(
        f"""\
        def peak(layers, length):
            k = -(-layers // length)
            last = layers - (k - 1) * length
            return {single} if k == 1 else {several}"""
    )


def two(result: str) -> str:
    return one_line("peak_of_two(layers, length)", result)


def deepest(result: str) -> str:
    return one_line("deepest(room)", result)


def least(step: str, result: str = "input_bytes + best", total: str = "total += size") -> str:
    return dedent(
        f"""\
        def least_from(input_bytes, inside, least):
            total, best = 0, math.inf
            for size, rest in zip(inside, least):
                {total}
                best = min(best, {step})
            return {result}"""
    )


def batch(result: str) -> str:
    return one_line("largest_batch(limit, fixed, per_image)", result)


def mean(result: str) -> str:
    return one_line("whole_mean(means, sizes)", result)


def silu(gradient: str = "s * (np.float32(1) + x[i] * (np.float32(1) - s))", guard: str = "if i < x.size:") -> str:
    return dedent(
        f"""\
        @cuda.jit
        def silu_backward(dy, x, dx):
            i = cuda.grid(1)
            {guard}
                s = np.float32(1) / (np.float32(1) + math.exp(-x[i]))
                dx[i] = dy[i] * {gradient}"""
    )


SERIAL = dedent(
    """\
    @cuda.jit
    def silu_backward(dy, x, dx):
        if cuda.grid(1) == 0:
            for i in range(x.size):
                s = np.float32(1) / (np.float32(1) + math.exp(-x[i]))
                dx[i] = dy[i] * s * (np.float32(1) + x[i] * (np.float32(1) - s))"""
)
IN_TURN = dedent(
    """\
    @cuda.jit
    def silu_backward(dy, x, dx):
        i = cuda.grid(1)
        for turn in range(32):
            if cuda.threadIdx.x % 32 == turn and i < x.size:
                s = np.float32(1) / (np.float32(1) + math.exp(-x[i]))
                dx[i] = dy[i] * s * (np.float32(1) + x[i] * (np.float32(1) - s))"""
)
UNSEEN = "f(*map(tf.stop_gradient, arguments))"

ANSWERS = {
    "your-turn-kept": Answers(
        kept("layers * batch * width * 4 / 2**20"),
        {
            kept("layers * batch * width / 2**20"): "kept_mib returns the wrong value",
            kept("2 * layers * batch * width * 4 / 2**20"): "kept_mib returns the wrong value",
            kept("layers * batch * width * 4 / 1e6"): r"kilo means 1000, kibi (KiB, MiB) 1024",
        },
    ),
    "your-turn-recompute": Answers(
        recompute(UNSEEN),
        {
            recompute("f(*arguments)"): "who else records what happens inside f",
            recompute(UNSEEN, gradient="again, arguments"): "whether dy is in it",
            recompute(UNSEEN, inner=UNSEEN): "the gradient of layer 0 is None",
            recompute("f(tf.stop_gradient(arguments[0]), *arguments[1:])"): "after the forward pass too much is alive",
            "def recompute(f):\n    return f": "too few layers run",
            "recompute = tf.recompute_grad": "leaves the work to a ready-made function",
            "def recompute(f):\n    return tf.recompute_grad(f)": "leaves the work to a ready-made function",
        },
    ),
    "your-turn-peak": Answers(
        peak("layers", "max(k - 1 + last, k - 2 + length)"),
        {
            peak("layers", "k - 1 + length"): "answers are right where layers is a multiple of length",
            peak("layers", "k - 1 + last"): "peak returns the wrong value",
        },
    ),
    "your-turn-two": Answers(
        two("layers // length - 1 + 2 * length"),
        {
            two("layers // length - 1 + length"): "peak_of_two returns the wrong value",
            two("layers // length + 2 * length"): "too large by 1",
            two("2 * (layers // length - 1) + 2 * length"): "peak_of_two returns the wrong value",
        },
        shows="length  8: 368 MiB",
    ),
    "your-turn-deepest": Answers(
        deepest("room * (room + 1) // 2"),
        {
            deepest("room**2 // 2"): "of 1, 2, 3, 6 come 0, 2, 4, 18, where 1, 3, 6, 21 are right",
            deepest("room * (room - 1) // 2"): "deepest(room=1)",
        },
    ),
    "your-turn-least": Answers(
        least("max(total, rest)"),
        {
            least("total + rest"): "least_from returns the wrong value",
            least("max(total, rest)", "best"): "least_from returns the wrong value",
            least("max(total, rest)", total="total = size"): "least_from returns the wrong value",
        },
    ),
    "your-turn-batch": Answers(
        batch("max(0, (limit - fixed) // per_image)"),
        {
            batch("(limit - fixed) // per_image"): "limit=100, fixed=300",
            batch("limit // per_image"): "largest_batch returns the wrong value",
            batch("max(0, round((limit - fixed) / per_image))"): "limit=30, fixed=2, per_image=5",
        },
    ),
    "your-turn-accumulate": Answers(
        mean("sum(m * s for m, s in zip(means, sizes)) / sum(sizes)"),
        {
            mean("sum(means) / len(means)"): "whole_mean returns the wrong value",
            mean("sum(m * s for m, s in zip(means, sizes)) / len(sizes)"): "whole_mean returns the wrong value",
        },
    ),
    "your-turn-silu": Answers(
        silu(),
        {
            silu("s"): "dx is wrong",
            silu(guard="if True:"): "the guard",
            SERIAL: "one thread does too much of the work",
            IN_TURN: "too much of the work",
        },
    ),
}

"""Right and wrong answers to the tasks of lesson 07 ("Your turn"), by the id of the answer cell."""

from tests.support.lesson_answers import Answers, one_line

RATE = "rate_for_mean(rate, samples)"
TRACES = "traces(calls)"
AVERAGE = "average_uneven(gradients, samples)"
ROUND = "round_through(x)"
CYCLE = "rate_needed(exaflop, hours)"
BATCHES = "batches(images, labels, size)"
SLICES = "tf.data.Dataset.from_tensor_slices"
APART = f"tf.data.Dataset.zip(tuple({SLICES}(a).shuffle(len(a)) for a in (images, labels)))"
WEIGHTED = "sum(g * n for g, n in zip(gradients, samples))"


def train_step(update: str, result: str = "loss") -> str:
    return (
        "def train_step(weights, images, labels):\n    with tf.GradientTape() as tape:\n"
        "        loss = digits.loss(weights, images, labels, gelu)\n"
        "    for weight, gradient in zip(weights, tape.gradient(loss, weights)):\n"
        f"        {update}\n    return {result}"
    )


def next_scale(bad: str, good: str) -> str:
    return (
        f"def next_scale(scale, finite, good, interval):\n    if not finite:\n        return {bad}\n    return {good}"
    )


def relu_backward(body: str) -> str:
    return f"@cuda.jit\ndef relu_backward(x, dy, dx):\n    i = cuda.grid(1)\n    {body}"


ONE_THREAD = "if i == 0:\n        for k in range(dx.size): dx[k] = dy[k] if x[k] > 0 else 0"
IN_TURN = (
    "for turn in range(32):\n        if cuda.threadIdx.x % 32 == turn and i < dx.size: dx[i] = dy[i] if x[i] > 0 else 0"
)

ANSWERS = {
    "your-turn-step": Answers(
        train_step("weight.assign_sub(0.5 * gradient)"),
        {
            train_step("pass"): "train_step returns the wrong value",
            train_step("weight = weight - 0.5 * gradient"): "train_step returns the wrong value",
            train_step("weight.assign_sub(gradient)"): "train_step returns the wrong value",
            train_step("weight.assign_add(0.5 * gradient)"): "train_step returns the wrong value",
            train_step(
                "weight.assign_sub(0.5 * gradient)", "digits.loss(weights, images, labels, gelu)"
            ): "train_step returns the wrong value",
        },
        also=(train_step("weight.assign(weight - gradient / 2)"),),
    ),
    "your-turn-batches": Answers(
        one_line(BATCHES, f"{SLICES}((images, labels)).shuffle(len(images)).batch(size, drop_remainder=True)"),
        {
            one_line(BATCHES, f"{SLICES}((images, labels)).shuffle(len(images)).batch(size)"): "batches of 50 images",
            one_line(BATCHES, f"{SLICES}((images, labels)).batch(size, drop_remainder=True)"): "in the same order",
            one_line(
                BATCHES,
                f"{SLICES}((images, labels)).shuffle(len(images), reshuffle_each_iteration=False)"
                ".batch(size, drop_remainder=True)",
            ): "in the same order",
            one_line(
                BATCHES, f"{SLICES}((images, labels)).batch(size, drop_remainder=True).shuffle(len(images))"
            ): "batches of neighbours",
            one_line(BATCHES, f"{APART}.batch(size, drop_remainder=True)"): "images with another's label",
        },
        shows="1 trace, accuracy",
    ),
    "your-turn-rate": Answers(
        one_line(RATE, "rate * samples"),
        {
            one_line(RATE, "rate / samples"): "the error differs from input to input",
            one_line(RATE, "rate"): "the error differs from input to input",
            one_line(RATE, "0.256"): "the same value for all",
        },
        shows="losses after ten steps: 3.535 (sum), 3.535 (mean)",
    ),
    "your-turn-traces": Answers(
        one_line(TRACES, "len(set(calls))"),
        {
            one_line(TRACES, "len(calls)"): "traces returns the wrong value",
            one_line(TRACES, "1"): "the same value for all",
            one_line(TRACES, "1 + sum(a != b for a, b in zip(calls, calls[1:]))"): "traces returns the wrong value",
            one_line(TRACES, "len({kind for kind, _ in calls})"): "traces returns the wrong value",
        },
    ),
    "your-turn-average": Answers(
        one_line(AVERAGE, f"{WEIGHTED} / sum(samples)"),
        {
            one_line(AVERAGE, "sum(gradients) / len(gradients)"): "average_uneven returns the wrong value",
            one_line(AVERAGE, WEIGHTED): "average_uneven returns the wrong value",
            one_line(AVERAGE, f"{WEIGHTED} / len(samples)"): "average_uneven returns the wrong value",
        },
    ),
    "your-turn-scale": Answers(
        next_scale("max(1.0, scale / 2)", "2 * scale if good % interval == 0 else scale"),
        {
            next_scale("scale / 2", "2 * scale if good % interval == 0 else scale"): "next_scale(scale=1.0",
            next_scale("max(1.0, scale / 2)", "2 * scale if good >= interval else scale"): "good=31",
            next_scale("max(1.0, scale / 2)", "2 * scale"): "good=1999",
            next_scale("scale", "2 * scale if good % interval == 0 else scale"): "finite=False",
        },
    ),
    "your-turn-relu": Answers(
        relu_backward("if i < dx.size: dx[i] = dy[i] if x[i] > 0 else 0"),
        {
            relu_backward("dx[i] = dy[i] if x[i] > 0 else 0"): "the guard",
            relu_backward("if i < dx.size: dx[i] = dy[i]"): "dx is wrong",
            relu_backward("if i < dx.size: dx[i] = x[i] if x[i] > 0 else 0"): "dx is wrong",
            relu_backward("if i < dx.size and x[i] > 0: dx[i] = dy[i]"): "never written",
            relu_backward(ONE_THREAD): "one thread does too much of the work",
            relu_backward(IN_TURN): "too many warp instructions",
        },
    ),
    "your-turn-round": Answers(
        one_line(ROUND, "tf.round(x), lambda dy: dy"),
        {
            one_line(ROUND, "x, lambda dy: dy"): "round_through returns the wrong value",
            one_line(ROUND, "tf.round(x), lambda dy: 0 * dy"): "round_through returns the wrong value",
            one_line(ROUND, "tf.round(x), lambda dy: dy * tf.round(x)"): "round_through returns the wrong value",
            one_line(ROUND, "tf.round(x), lambda dy: None"): "round_through returns nothing",
        },
    ),
    "your-turn-cycle": Answers(
        one_line(CYCLE, "exaflop * 1e6 / (hours * 3600)"),
        {
            one_line(CYCLE, "exaflop / (hours * 3600)"): "a power of 1000 is missing",
            one_line(CYCLE, "exaflop * 1e6 / hours"): "every result is 3600 times the right one",
            one_line(CYCLE, "exaflop * 1e6 * hours * 3600"): "the error differs from input to input",
        },
        shows="10 exaFLOP need 347, 30 need 1042",
    ),
}

"""Right and wrong answers to the tasks of lesson 13 ("Your turn"), by the id of the answer cell."""

from tests.support.lesson_answers import Answers


def halve(body: str) -> str:
    return f"@cuda.jit\ndef halve(x, out):\n    i = cuda.grid(1)\n    {body}"


ANSWERS = {
    "your-turn-halve": Answers(
        halve("if i < out.size: out[i] = x[i] / 2"),
        {
            halve("out[i] = x[i] / 2"): "the guard",
            halve("if i < out.size: out[i] = x[i] * 2"): "the expression that computes",
        },
    ),
}

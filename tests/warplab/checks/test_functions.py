"""The checks of functions: what passes, what fails, and for what reason."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from warplab import checks


def function_failure(function, expected=lambda x: 3.0 * x) -> checks.CheckFailed:
    with pytest.raises(checks.CheckFailed) as caught:
        checks.function(function, expected, lambda rng: {"x": float(rng.uniform(1, 2))})
    return caught.value


def test_a_whole_number_is_shown_as_the_expected_one_is():
    with pytest.raises(checks.CheckFailed, match=r"expected  24\n  got       12\n"):
        checks.examples(lambda x: 12.0 * x, [({"x": 1}, 24), ({"x": 2}, 24)])


def test_a_right_function_passes(capfd):
    assert checks.function(lambda x: 3 * x, lambda x: x + x + x, lambda rng: {"x": float(rng.random())}) is None
    out, err = capfd.readouterr()
    assert out == "<lambda>: right for 100 inputs.\n"
    assert err == ""


def test_an_array_without_dimensions_is_a_number(capsys):
    checks.function(
        lambda x: np.where(x > 1.5, 3 * x, 3 * x), lambda x: 3.0 * x, lambda rng: {"x": float(rng.random())}
    )
    checks.examples(lambda x: np.asarray(x > 1), [({"x": 1}, False), ({"x": 2}, True)])
    assert "array(7.0" not in str(function_failure(lambda x: np.asarray(7.0)))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: None, "not written yet"),
        (
            lambda x: print(end=""),
            "<lambda> returns nothing.(.|\n)*print shows a value, return hands it back, on each way through",
        ),
        (lambda x: str(3 * x), "wrong type"),
        (lambda x: np.array([3 * x]), "wrong type"),
        (lambda x: True, "wrong type"),
        (lambda x: float("nan"), "not finite"),
        (lambda x: float("inf"), "not finite"),
        (lambda x: 1 / 0, "raises ZeroDivisionError"),
        (lambda y: 3 * y, "raises TypeError"),
        (lambda x: 4.5, "the same value for all"),
        (lambda x: 3000 * x, "a power of 1000"),
        (lambda x: 24 * x, "bits or bytes"),
        (lambda x: 3 * x * 1e9 / 2**30, "kilo means 1000, kibi"),
        (lambda x: 2 * x, "every result is 0.666667 times"),
        (lambda x: 1 / (3 * x), "every answer is 1 divided by the right one"),
        (lambda x: 3 * x + 0.1, "the error differs from input to input$"),
        (lambda x: 3 * x + 0.1 * (x > 1.5), r"from input to input; \d+ of 100 answers are right"),
    ],
)
def test_a_wrong_function_is_rejected_for_its_reason(function, message):
    assert re.search(message, str(function_failure(function)))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x <= 1.5, "every answer is the opposite"),
        (lambda x: False, "the same value for all"),
        (lambda x: x > 1.9, "answers are wrong"),
        (lambda x: 1, "wrong type"),
        (lambda x: "True", "wrong type"),
    ],
)
def test_yes_or_no(function, message):
    assert message in str(function_failure(function, lambda x: x > 1.5))


def test_right_answers_but_where_0_is_right_are_no_factor():
    table = [({"x": x}, max(0, x)) for x in (-2.5, -1.5, 1, 4)]
    with pytest.raises(checks.CheckFailed, match="right answer is 0: the other 2 answers are right"):
        checks.examples(lambda x: x, table)
    with pytest.raises(checks.CheckFailed, match="only this input: the other 4 answers are right"):
        checks.examples(lambda x: x, [*table[1:], ({"x": 5}, 5), ({"x": 6}, 6)])


def test_one_wrong_answer_of_several():
    with pytest.raises(checks.CheckFailed, match="1 of 3 answers is wrong"):
        checks.examples(lambda x: x > 3, [({"x": 1}, False), ({"x": 2}, True), ({"x": 4}, True)])


def test_the_unit_is_a_cause_of_a_comparison_that_never_changes():
    with pytest.raises(checks.CheckFailed, match="are they in the same unit"):
        checks.examples(lambda x: x <= 2, [({"x": 1e9}, True), ({"x": 3e9}, False)])


@pytest.mark.parametrize(
    ("answer", "look_at"),
    [
        (
            lambda x: math.floor(x),
            "off by one: every wrong answer, 4 of 4, is too small by 1. ",
        ),
        (lambda x: math.ceil(x) + 1, "off by one: every wrong answer, 4 of 4, is too large by 1. "),
        (lambda x: math.ceil(2 * x), "what is counted: every result is about 2 times the right one"),
        (lambda x: math.ceil(x / 4), "what is counted: every result is about 0.25 times the right one"),
        (lambda x: math.ceil(x * x), "how the result depends on each input: the error differs from input to input"),
        (lambda x: 2 * x, "how the result depends on each input: the error differs from input to input"),
    ],
)
def test_whole_numbers_wrong_by_their_rounding_or_a_factor_before_it(answer, look_at):
    table = [({"x": x}, math.ceil(x)) for x in (44.4, 342.8, 54.5, 8.9)]
    with pytest.raises(checks.CheckFailed) as caught:
        checks.examples(answer, table)
    assert caught.value.look_at.startswith(look_at)


@pytest.mark.parametrize(
    ("answer", "look_at"),
    [
        (lambda x, scale: int(x / scale), "each wrong answer is nearer to 0 by 1: int cuts off, round gives"),
        (
            lambda x, scale: round(x / scale),
            "only answers that should be -9 or 9 are wrong, and lie beyond: is a limit",
        ),
        (lambda x, scale: max(-9, round(x / scale)), "only answers that should be 9 are wrong"),
        (lambda x, scale: max(-9, min(9, round(x * scale))), "how the result depends on each input"),
    ],
)
def test_a_rounding_or_a_limit_that_is_missing(answer, look_at):
    table = [
        ({"x": x, "scale": 0.5}, max(-9, min(9, round(x / 0.5)))) for x in (1, 1.3, -1.3, 30, 40, -30, -31, 2.3, 3)
    ]
    if look_at.startswith("each"):
        table = [row for row in table if abs(row[1]) < 9]
    with pytest.raises(checks.CheckFailed) as caught:
        checks.examples(answer, table)
    assert caught.value.look_at.startswith(look_at)


def test_of_one_whole_number_the_first_answers_are_told():
    with pytest.raises(checks.CheckFailed) as caught:
        checks.examples(lambda m: m**2 // 2, [({"m": m}, m * (m + 1) // 2) for m in (1, 2, 3, 6, 37)])
    assert caught.value.look_at.startswith(
        "of 1, 2, 3, 6 come 0, 2, 4, 18, where 1, 3, 6, 21 are right\nhow the result"
    )


def test_where_answers_are_right_is_told_by_two_inputs():
    table = [({"n": n, "parts": parts}, math.ceil(n / parts)) for n in range(20, 30) for parts in (2, 5, 7)]
    with pytest.raises(checks.CheckFailed) as caught:
        checks.examples(lambda n, parts: n // parts + 3 * (n % parts), table)
    assert caught.value.look_at.startswith(
        "all 9 answers are right where n is a multiple of parts; of the others 0 of 21\n"
    )


def test_an_exception_names_the_line_of_the_learner():
    def share(n, tile):
        tiles = n // tile
        return 1 / tiles

    with pytest.raises(checks.CheckFailed, match="ZeroDivisionError") as caught:
        checks.examples(share, [({"n": 16, "tile": 128}, 1.0)])
    assert caught.value.look_at.endswith(": return 1 / tiles")


def test_division_that_rounds_down():
    with pytest.raises(checks.CheckFailed, match="every answer is the right one rounded down: // rounds down"):
        checks.examples(lambda n, m: n // m, [({"n": 7, "m": 2}, 3.5), ({"n": 1, "m": 6}, 1 / 6)])


def test_a_number_that_was_to_be_rounded_up():
    with pytest.raises(checks.CheckFailed, match="every answer is the right one before it is rounded up"):
        checks.examples(lambda n: n / 32, [({"n": n}, -(-n // 32)) for n in (5, 33, 64)])


def test_the_ratio_of_a_single_result_is_told_only_if_it_is_whole():
    for wrong, look_at in ((9, ""), (32, "what is counted: the result is 2 times the right one")):
        with pytest.raises(checks.CheckFailed) as caught:
            checks.examples(lambda n, wrong=wrong: wrong, [({"n": 1}, 16)])
        assert caught.value.look_at == look_at


def test_a_single_wrong_answer_is_named_as_such():
    table = [({"x": x}, round(4 * x) / 4) for x in (0.2, 0.7, 1.6, 2.125, 3.1, 9.9)]
    with pytest.raises(checks.CheckFailed, match="only this input: the other 5 answers are right"):
        checks.examples(lambda x: math.floor(4 * x + 0.5) / 4, table)


def test_wrong_answers_on_one_side():
    table = [({"x": x}, 3 * x) for x in (0.5, 1.0, 2.0, 3.5)]
    with pytest.raises(checks.CheckFailed, match=r"1 of 4 answers are right, and no wrong one is too small"):
        checks.examples(lambda x: 3 * x + max(0, x - 0.5) ** 2, table)


def test_an_only_input_is_used():
    with pytest.raises(checks.CheckFailed) as caught:
        checks.examples(lambda n: n // 2 * 4, [({"n": 2}, 1), ({"n": 3}, 2), ({"n": 9}, 5)])
    assert "Does it use" not in caught.value.look_at


def test_an_input_that_is_not_used_is_named():
    table = [({"n": n, "parts": parts}, n / parts) for n, parts in ((12, 2), (12, 3), (20, 4))]
    with pytest.raises(checks.CheckFailed) as caught:
        checks.examples(lambda n, parts: 7.0 * n, table)
    assert caught.value.look_at.endswith("Does it use parts? It returned 84.0 for inputs that differ in it alone.")
    with pytest.raises(checks.CheckFailed) as caught:
        checks.examples(lambda n, parts: 7.0 * n / parts**2, table)
    assert "Does it use" not in caught.value.look_at


def test_an_input_that_a_comparison_uses_wrongly_is_not_said_to_be_unused():
    table = [({"n": n, "parts": parts}, n > 2 * parts) for n, parts in ((12, 2), (12, 8), (20, 4))]
    with pytest.raises(checks.CheckFailed, match=r"Does it use parts as it should[?] It returned True"):
        checks.examples(lambda n, parts: n > parts, table)


def test_numpy_scalars_are_numbers():
    checks.examples(lambda x: np.float32(x), [({"x": 0.5}, 0.5)])
    checks.examples(lambda x: np.bool_(x > 0), [({"x": 0.5}, True)])
    checks.examples(lambda x: x, [({"x": 3}, 3)])


def test_function_failure_can_be_repeated():
    error = function_failure(lambda x: 2 * x)
    call = re.search(r"<lambda>\(x=([\d.]+)\), seed \d+", error.where)
    assert float(error.expected) == 3 * float(call[1])
    assert float(error.got) == 2 * float(call[1])


def test_no_function_and_no_inputs():
    with pytest.raises(checks.CheckFailed, match="A function is expected"):
        checks.examples(3.0, [({}, 3.0)])
    with pytest.raises(ValueError, match="no inputs"):
        checks.examples(abs, [])


def _root(x):
    if x < 0:
        raise RuntimeError("no root")
    return x**0.5


def test_an_exception_may_be_asked_for():
    checks.examples(_root, [({"x": 4}, 2), ({"x": -1}, RuntimeError)])
    checks.function(
        _root, lambda x: RuntimeError if x < 0 else math.sqrt(x), lambda rng: {"x": float(rng.uniform(-1, 1))}
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda x: abs(x) ** 0.5, "does not raise(.|\n)*expected  raise RuntimeError(.|\n)*got       1.0"),
        (lambda x: None if x < 0 else x**0.5, "does not raise(.|\n)*got       None"),
        (lambda x: math.sqrt(x), "raises ValueError(.|\n)*expected  raise RuntimeError"),
        (lambda x: _not_yet() if x < 0 else x**0.5, "raises NotImplementedError(.|\n)*expected  raise RuntimeError"),
        (lambda x: _root(x) + 1, "the wrong value(.|\n)*got       3.0"),
        (lambda x: _root(-1), "raises RuntimeError: no root\n *input"),
    ],
)
def test_another_exception_or_none_is_wrong(body, message):
    with pytest.raises(checks.CheckFailed, match=message):
        checks.examples(body, [({"x": 4}, 2.0), ({"x": -1}, RuntimeError)])


def _not_yet():
    raise NotImplementedError("later")


def test_arrays_of_other_lengths_are_other_inputs():
    def sizes(x, n):
        return 1.0

    table = [({"x": np.arange(8), "n": 2}, 1.0), ({"x": np.arange(7), "n": 2}, 2.0)]
    with pytest.raises(checks.CheckFailed, match="sizes"):
        checks.examples(sizes, table)

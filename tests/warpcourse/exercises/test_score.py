"""What is told of an executed cell that failed."""

from __future__ import annotations

import nbformat

from warpcourse.exercises.score import _error, _failure


def executed(*outputs):
    return nbformat.v4.new_code_cell("x", outputs=list(outputs))


def error(name: str, message: str, *traceback: str):
    return nbformat.v4.new_output("error", ename=name, evalue=message, traceback=list(traceback))


def stderr(text: str):
    return nbformat.v4.new_output("stream", name="stderr", text=text)


def test_an_error_comes_before_a_warning():
    cell = executed(stderr("unused variable"), error("CheckFailed", "f has a data race."))
    assert _failure(cell) == "f has a data race."
    assert _failure(executed(stderr("careful"))).endswith("nbgrader counts as a failure:\ncareful")
    assert _failure(executed()) == _error(executed(stderr("careful"))) == ""


def test_what_was_meant_comes_before_the_compiler_s_message():
    shown = (
        "cell [2], line 6:",
        "    f[1, 32](x)",
        "line 4: return x[0]",
        "A kernel returns nothing.",
        "TypingError: no",
    )
    assert _error(executed(error("TypingError", "no", *shown))) == "\n".join([*shown[2:4], "TypingError: no"])


def test_a_whole_traceback_is_left_out():
    shown = ("-----", "NameError    Traceback (most recent call last)", "Cell In[1], line 1", "NameError: name 'f'")
    assert _error(executed(error("NameError", "name 'f'", *shown))) == "NameError: name 'f'"

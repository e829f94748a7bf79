"""A prediction is committed before the answer is there, kept, and shown beside it."""

import re

import pytest

from warpcourse.learner import form, record
from warpcourse.learner.attempts import attempt
from warpcourse.learner.predictions import compare, predict

KEY, QUESTION, UNIT = "02/every-eighth", "How many sectors will each request take?", "sectors per request"


def test_a_prediction_and_the_value_stand_side_by_side(capsys):
    predict(KEY, QUESTION, unit=UNIT, answer=4)
    compare(KEY, 32.0)
    out = capsys.readouterr().out
    assert "You predicted 4 sectors per request. Now read on." in out
    beside = r"you predicted: 4\nit is: +32 sectors per request\nIt is 8 times as much as you predicted\.$"
    assert re.search(beside, out.strip())


def test_it_says_where_the_answer_comes_if_not_next(capsys):
    predict(KEY, QUESTION, unit=UNIT, later="the verdict", answer=4)
    assert "You predicted 4 sectors per request. The answer comes in the verdict." in capsys.readouterr().out


def test_without_input_it_runs_and_says_so(capsys):
    predict(KEY, QUESTION, unit=UNIT)
    asked = capsys.readouterr().out
    assert QUESTION in asked
    assert "predict('02/every-eighth', ..., answer=…)" in asked
    compare(KEY, 32.0)
    assert "you predicted: no prediction\nit is:         32 sectors" in capsys.readouterr().out


def test_the_question_shows_nothing_of_the_answer(capsys):
    predict(KEY, QUESTION, unit=UNIT, answer=4)
    compare(KEY, 7531)
    capsys.readouterr()
    predict(KEY, QUESTION, unit=UNIT)
    assert "7531" not in capsys.readouterr().out.replace(",", "")


def test_a_choice(capsys):
    predict("03/faster", "Which is faster?", ["rows", "columns"], answer="rows")
    compare("03/faster", "columns", label="recorded on NVIDIA H100")
    assert "columns, recorded on NVIDIA H100\nYou predicted something else." in capsys.readouterr().out
    predict("03/other", "Which is faster?", ["rows", "columns"], answer="columns")
    compare("03/other", "columns")
    assert capsys.readouterr().out.endswith("As you predicted.\n")


def test_a_choice_is_taken_whatever_its_case_and_another_refused_in_one_sentence(capsys):
    predict("03/faster", "Which is faster?", ["rows", "columns"], answer="Rows ")
    compare("03/faster", "rows")
    assert capsys.readouterr().out.endswith("As you predicted.\n")
    with pytest.raises(ValueError, match="must be one of") as refused:
        predict("03/faster", "Which is faster?", ["rows", "columns"], answer="both")
    assert refused.value._render_traceback_() == [f"NoAnswer: {refused.value}"]


def test_a_prediction_is_kept_for_the_next_session(capsys, monkeypatch):
    from warpcourse.learner import predictions

    predict(KEY, QUESTION, unit=UNIT, answer=4)
    monkeypatch.setattr(predictions, "_asked", {})
    predict(KEY, QUESTION, unit=UNIT)
    compare(KEY, 4)
    assert "Exactly as you predicted." in capsys.readouterr().out
    kept = record.entry("predictions", KEY)
    assert (kept["answer"], kept["question"], kept["seen"], kept["late"]) == (4, QUESTION, 4, False)


def test_what_is_committed_after_the_result_is_marked(capsys):
    predict(KEY, QUESTION, unit=UNIT)
    compare(KEY, 32)
    predict(KEY, QUESTION, unit=UNIT, answer=32)
    compare(KEY, 32)
    assert "Exactly as you predicted. You committed it after the result had been shown." in capsys.readouterr().out


def test_running_the_cells_again_does_not_make_a_prediction_late(capsys):
    for _ in range(2):
        predict(KEY, QUESTION, unit=UNIT, answer=4)
        compare(KEY, 32)
    assert "after the result" not in capsys.readouterr().out
    predict(KEY, QUESTION, unit=UNIT, answer=32)  # corrected once the result is known
    compare(KEY, 32)
    assert "after the result" in capsys.readouterr().out


def test_a_prediction_for_another_form_of_the_question_does_not_count(capsys):
    predict(KEY, QUESTION, unit=UNIT, answer=4)
    predict(KEY, "Which?", ["few", "many"])
    compare(KEY, "many")
    assert "You made no prediction." in capsys.readouterr().out


def test_a_file_that_cannot_be_written_is_said_and_stops_nothing(mine, capsys):
    mine.write_text("a file where the folder should be")
    predict(KEY, QUESTION, unit=UNIT, answer=4)
    compare(KEY, 4)
    out = capsys.readouterr().out
    assert "cannot be written" in out
    assert "Exactly as you predicted." in out


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: predict("eighth", QUESTION), "the key is 'eighth'; give the number of the lab"),
        (lambda: predict(KEY, " "), "asks nothing"),
        (lambda: predict(KEY, QUESTION, ["one"]), "give at least two different texts"),
        (lambda: predict(KEY, QUESTION, ["a", "a"]), "give at least two different texts"),
        (lambda: predict(KEY, QUESTION, "ab"), "give at least two different texts"),
        (lambda: predict(KEY, QUESTION, ["a", "b"], unit="s"), "a unit belongs to a number"),
        (lambda: predict(KEY, QUESTION, ["a", "b"], answer="c"), "must be one of 'a', 'b'"),
        (lambda: predict(KEY, QUESTION, ["a", "b"], answer=1), "must be one of 'a', 'b'"),
        (lambda: predict(KEY, QUESTION, answer="four"), "must be a number"),
        (lambda: predict(KEY, QUESTION, answer=float("nan")), "must be a finite number"),
        (lambda: predict(KEY, QUESTION, answer=True), "must be a finite number"),
        (lambda: compare(KEY, None), "must be a finite number"),
    ],
)
def test_bad_calls_say_what_to_do(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


class Shown:
    """Stands in for IPython's handle of a display."""

    def __init__(self):
        self.pages = []

    def update(self, data, raw):
        assert raw
        self.pages.append(data)


@pytest.fixture
def in_notebook(monkeypatch):
    """What a notebook is shown, as MIME bundles; ipywidgets work without a browser."""
    displayed = []

    def display(data, **_):
        displayed.append(data)
        return Shown()

    monkeypatch.setattr(form, "in_notebook", lambda: True)
    monkeypatch.setattr("IPython.display.display", display)
    return displayed


def form_of(key):
    from warpcourse.learner import predictions

    return predictions._asked[key].form


def test_the_form_commits_a_number_and_gives_way_to_it(in_notebook, monkeypatch):
    monkeypatch.delattr("ipywidgets.Widget._repr_mimebundle_")  # as ipywidgets 7, which Colab has
    predict(KEY, QUESTION, unit=UNIT)
    asked = form_of(KEY)
    assert form.WIDGET in in_notebook[0]
    assert QUESTION in in_notebook[0]["text/html"]  # for readers of the saved notebook
    asked.button.click()
    assert asked.message.value == "Type a number first."
    asked.field.value = "lots"
    asked.button.click()
    assert "is no number; type one such as" in asked.message.value
    assert record.entry("predictions", KEY) == {}
    asked.field.value = "1/8"
    asked.field._handle_custom_msg({"event": "submit"}, [])  # Enter
    assert record.entry("predictions", KEY)["answer"] == 0.125
    assert "You predicted <b>0.125 sectors per request</b>" in asked._handle.pages[-1]["text/html"]
    assert form.WIDGET not in asked._handle.pages[-1]


def test_the_form_commits_a_choice_and_none_is_chosen_before(in_notebook):
    predict("03/faster", "Which is <faster>?", ["rows", "columns"])
    asked = form_of("03/faster")
    assert asked.field.value is None
    assert "Which is &lt;faster&gt;?" in in_notebook[0]["text/html"]
    asked.button.click()
    assert asked.message.value == "Choose one first."
    asked.field.value = "columns"
    asked.button.click()
    compare("03/faster", "columns")
    assert "As you predicted." in in_notebook[-1]["text/html"]


def test_what_stands_in_the_form_counts_without_a_click(in_notebook):
    predict(KEY, QUESTION, unit=UNIT)
    form_of(KEY).field.value = "4"
    compare(KEY, 32)
    assert "It is 8 times as much as you predicted." in in_notebook[-1]["text/html"]
    assert record.entry("predictions", KEY)["late"] is False


def test_a_form_that_is_run_again_holds_the_earlier_answer_until_the_result_was_seen(in_notebook):
    predict(KEY, QUESTION, unit=UNIT)
    form_of(KEY).field.value = "4"
    form_of(KEY).commit()
    predict(KEY, QUESTION, unit=UNIT)
    assert form_of(KEY).field.value == "4"
    compare(KEY, 32)
    predict(KEY, QUESTION, unit=UNIT)
    assert form_of(KEY) is None
    assert "You predicted <b>4 sectors per request</b>" in in_notebook[-1]["text/html"]


def test_without_ipywidgets_the_question_says_what_to_write(in_notebook, monkeypatch):
    monkeypatch.setattr(form, "has_widgets", lambda: False)
    predict(KEY, QUESTION, unit=UNIT)
    assert form.WIDGET not in in_notebook[0]
    assert "add <code>answer=…</code> to the call" in in_notebook[0]["text/html"]
    predict("03/rows", "Which is faster?", ["rows", "columns"])
    assert "add <code>answer='…'</code> to the call" in in_notebook[1]["text/html"]  # no choice stands out


def test_code_in_a_question_is_marked_as_code(in_notebook):
    predict(KEY, "Is `a < b`, or `b`?", unit=UNIT)
    assert "<b>Predict:</b> Is <code>a &lt; b</code>, or <code>b</code>?" in in_notebook[0]["text/html"]
    assert form_of(KEY).field.tooltip == f"Is a < b, or b? ({UNIT})"


def test_a_task_is_kept_once_its_check_passes(capsys):
    from warplab.checks import CheckFailed

    with attempt("01/add"):
        raise CheckFailed("add wrote nothing")
    assert capsys.readouterr().out == "add wrote nothing\n"
    drawn = []
    for problem in ("add is not written yet: its body is empty.", "add is wrong"):
        with attempt("01/add", lambda problem=problem: drawn.append(problem)):
            raise CheckFailed(problem)
    assert drawn == ["add is wrong"]
    assert record.entry("tasks", "01/add") == {}
    with attempt("01/add"):
        pass
    assert record.entry("tasks", "01/add")["done"] is True
    with pytest.raises(ValueError, match="give the number of the lab"), attempt("add"):
        pass

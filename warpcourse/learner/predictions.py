"""Predictions: a learner commits a number or a choice before the answer is there, and then sees both side by side.

    predict("02/every-eighth", "How many sectors will each load request take?", unit="sectors per request")

and in a later cell, which carries the tag `reveal`,

    compare("02/every-eighth", p.counts.sectors_per_load_request)

Neither stops a notebook that is run from top to bottom: `compare` then says that there was no prediction.
"""

from __future__ import annotations

import html
import math
import numbers as abstract
from collections.abc import Sequence
from dataclasses import dataclass

from warpcourse.learner import form, numbers, record

Answer = form.Answer


class NoAnswer(ValueError):
    """An answer to a question that asks for another: in a notebook one sentence."""

    def _render_traceback_(self) -> list[str]:
        return [f"NoAnswer: {self}"]


@dataclass
class _Question:
    text: str
    choices: tuple[str, ...] | None
    unit: str
    later: str = ""
    form: form.Form | None = None


_asked: dict[str, _Question] = {}


def predict(
    key: str,
    question: str,
    choices: Sequence[str] | None = None,
    *,
    unit: str = "",
    later: str = "",
    answer: Answer | None = None,
) -> None:
    """Ask for a prediction: show a form with a field for a number, or with `choices`.

    `key`: number of the lab and a name, such as "02/every-eighth". `unit`: of the number, such as "sectors per
    request". `later`: where `compare` comes, such as "the verdict", if not in the next code cell. `answer`: the
    prediction itself, where there is no form to type it into; a number, or one of `choices`.

    What is committed is kept in the learner's own folder. Raises ValueError for a key without a lab's number, for
    fewer than two choices or repeated ones, for choices with a unit, and for an `answer` that is none.
    """
    key = record.check_key(key)
    if not question.strip():
        raise ValueError(f"predict({key!r}) asks nothing; write the question as second argument")
    if choices is not None and (isinstance(choices, str) or len(set(choices)) < max(2, len(choices))):
        raise ValueError(f"predict({key!r}): choices are {choices!r}; give at least two different texts in a list")
    if choices and unit:
        raise ValueError(f"predict({key!r}) has choices and a unit; a unit belongs to a number")
    asked = _asked[key] = _Question(question, tuple(choices) if choices else None, unit, later)
    if answer is not None:
        form.show(*_commit(key, _checked(answer, asked, f"the answer to predict({key!r})")))
        return
    kept = record.entry("predictions", key)
    earlier = _fitting(kept, asked)
    if earlier is not None and "seen" in kept:
        form.show(*_committed(asked, earlier, "You have seen what came of it."))
        return
    page, text = _static(key, asked)
    if not form.has_widgets():
        form.show(page, text)
        return
    asked.form = form.Form(
        question, asked.choices, unit, earlier, lambda given: _commit(key, _checked(given, asked, "the answer"))
    )
    asked.form.display(page, text)


def compare(key: str, value: float | str, *, label: str = "") -> None:
    """Show the learner's prediction beside `value`, with a sentence on the difference.

    `key`: as in `predict`. `value`: a number, or the choice that is right. `label`: where the value is from, such as
    the `label` of a recording. What stands in a form that was not committed counts, too.

    Raises ValueError for a value that is neither a finite number nor one of the choices.
    """
    key = record.check_key(key)
    asked = _asked.get(key) or _Question("", None, "")
    value = _checked(value, asked, f"the value of compare({key!r})")
    _take_pending(key, asked)
    kept = record.entry("predictions", key)
    predicted = _fitting(kept, asked)
    if isinstance(predicted, str) != isinstance(value, str):
        predicted = None
    late = predicted is not None and kept.get("late", False)
    record.keep("predictions", key, {"seen": value})
    said = _sentence(predicted, value, asked.unit) + " You committed it after the result had been shown." * late
    mine = "no prediction" if predicted is None else _shown(predicted)
    right = _with_unit(value, asked.unit) + (f", {label}" if label else "")
    page = (
        '<table style="margin:.3em 0"><tr style="background:none">'
        '<th style="text-align:left;padding-right:2em">you predicted</th><th style="text-align:left">it is</th></tr>'
        f'<tr style="background:none"><td style="text-align:left;padding-right:2em">{html.escape(mine)}</td>'
        f'<td style="text-align:left"><b>{html.escape(right)}</b></td></tr></table>'
    )
    question = f"{asked.text}\n" if asked.text else ""
    form.show(
        form.framed(form.as_html(asked.text), page, html.escape(said)),
        f"{question}you predicted: {mine}\nit is:         {right}\n{said}",
    )


def _checked(answer: object, asked: _Question, what: str) -> Answer:
    """Return the answer as a float or one of the choices. Raises ValueError."""
    if asked.choices is not None and answer not in asked.choices:
        for choice in asked.choices:
            if str(answer).strip().casefold() == choice.casefold():
                return choice
        raise NoAnswer(f"{what} is {answer!r}; it must be one of {', '.join(map(repr, asked.choices))}")
    if isinstance(answer, str):
        if asked.choices is None and asked.text:
            raise NoAnswer(f"{what} is {answer!r}; it must be a number")
        return answer
    if isinstance(answer, bool) or not isinstance(answer, abstract.Real) or not math.isfinite(answer):
        raise NoAnswer(f"{what} is {answer!r}; it must be a finite number")
    return float(answer)


def _fitting(kept: dict, asked: _Question) -> Answer | None:
    """Return the prediction that is kept, None if there is none or if it answered another form of the question."""
    try:
        return _checked(kept["answer"], asked, "")
    except (KeyError, ValueError):
        return None


def _take_pending(key: str, asked: _Question) -> None:
    """Commit what stands in an open form, so that a forgotten click loses nothing."""
    if asked.form is None or "answer" in record.entry("predictions", key):
        return
    try:
        given = asked.form.given()
    except ValueError:
        return
    if given is not None:
        asked.form.commit()


def _commit(key: str, answer: Answer) -> tuple[str, str]:
    """Keep a prediction; return what to show, as HTML and as text."""
    kept = record.entry("predictions", key)
    asked = _asked[key]
    late = kept.get("late", False) if kept.get("answer") == answer else "seen" in kept
    fields = {"answer": answer, "question": asked.text, "unit": asked.unit, "late": late}
    problem = record.keep("predictions", key, fields)
    then = f"The answer comes in {asked.later}." if asked.later else "Now read on."
    return _committed(asked, answer, f"Note: {problem}." if problem else then)


def _committed(asked: _Question, answer: Answer, then: str) -> tuple[str, str]:
    shown = _with_unit(answer, asked.unit)
    page = form.framed(form.as_html(asked.text), f"You predicted <b>{html.escape(shown)}</b>. {html.escape(then)}")
    return page, f"{asked.text}\nYou predicted {shown}. {then}"


def _static(key: str, asked: _Question) -> tuple[str, str]:
    """Return the question without a form, as HTML and as text."""
    example = "'…'" if asked.choices else "…"  # no answer as the example: it would be read as a hint
    offered = " or ".join(filter(None, [", ".join((asked.choices or ())[:-1]), *(asked.choices or ())[-1:]]))
    kind = offered or (f"A number, in {asked.unit}" if asked.unit else "A number")
    page = form.framed(
        f"<b>Predict:</b> {form.as_html(asked.text)}",
        f"{html.escape(kind)}. Run this cell to answer. "
        f"Without a form, add <code>answer={html.escape(example, quote=False)}</code> to the call.",
    )
    call = f"predict({key!r}, ..., answer={example})"
    return page, f"Predict: {asked.text}\n{kind}. Without a form, add the answer to the call: {call}"


def _sentence(predicted: Answer | None, value: Answer, unit: str) -> str:
    if predicted is None:
        return "You made no prediction."
    if isinstance(predicted, str) or isinstance(value, str):
        return "As you predicted." if predicted == value else "You predicted something else."
    return numbers.difference(predicted, value, unit)


def _with_unit(answer: Answer, unit: str) -> str:
    """Return an answer with its unit, such as "4 sectors per request" or "1 sector per request"."""
    noun, *rest = unit.split(" ")
    if answer == 1 and len(noun) > 3 and noun.endswith("s") and noun != "times":
        unit = " ".join([noun[:-1], *rest])
    return " ".join(filter(None, [_shown(answer), unit]))


def _shown(answer: Answer) -> str:
    return answer if isinstance(answer, str) else numbers.show(answer)

"""The form into which a learner types a prediction, and what a notebook shows in its place.

Without ipywidgets, or outside a notebook, there is no form: the question is shown with what to write instead.
"""

import html
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from warpcourse.learner import numbers

Answer = float | str

COMMIT = "Commit"
_FRAME = "border-left:3px solid #3b82c4;padding:.1em .8em;margin:.3em 0;max-width:60em"
WIDGET = "application/vnd.jupyter.widget-view+json"


def has_widgets() -> bool:
    """Return whether this process is a notebook's and ipywidgets are installed."""
    return in_notebook() and importlib.util.find_spec("ipywidgets") is not None


def in_notebook() -> bool:
    """Return whether this process is a notebook's."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def framed(*paragraphs: str) -> str:
    """Return HTML with a rule at its left. `paragraphs`: HTML."""
    inner = "".join(f'<p style="margin:.3em 0">{paragraph}</p>' for paragraph in paragraphs)
    return f'<div style="{_FRAME}">{inner}</div>'


def as_html(text: str) -> str:
    """Return a sentence as HTML, with what stands between backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text))


def show(page: str, text: str) -> Any:
    """Show `page` (HTML) in a notebook and `text` elsewhere. Returns IPython's handle, None outside a notebook."""
    if not in_notebook():
        print(text)
        return None
    from IPython.display import display

    return display({"text/html": page, "text/plain": text}, raw=True, display_id=True)


class Form:
    """A question with a field or buttons to choose, and a button that commits the answer.

    `commit`: called with the answer, returns HTML and text that take the form's place.
    """

    def __init__(
        self,
        question: str,
        choices: Sequence[str] | None,
        unit: str,
        earlier: Answer | None,
        commit: Callable[[Answer], tuple[str, str]],
    ) -> None:
        import ipywidgets as widgets

        self.choices, self._commit = choices, commit
        name = (f"{question} ({unit})" if unit else question).replace("`", "")  # that a screen reader says
        if choices:
            index = choices.index(earlier) if isinstance(earlier, str) and earlier in choices else None
            layout = widgets.Layout(width="auto")
            self.field = widgets.RadioButtons(options=list(choices), index=index, layout=layout, tooltip=name)
        else:
            value = numbers.show(earlier) if isinstance(earlier, float | int) else ""
            layout = widgets.Layout(width="9em")
            self.field = widgets.Text(value=value, placeholder="a number", layout=layout, tooltip=name)
            self.field.on_msg(self._entered)
        self.button = widgets.Button(description=COMMIT, button_style="primary", layout=widgets.Layout(width="8em"))
        self.button.on_click(lambda _: self.commit())
        self.message = widgets.HTML()
        asked = widgets.HTML(f"<b>Predict:</b> {as_html(question)}")
        row = widgets.VBox if choices else widgets.HBox
        units = [widgets.HTML(html.escape(unit))] if unit else []
        self.box = widgets.VBox([asked, row([self.field, *units, self.button]), self.message])
        self._handle: Any = None

    def display(self, page: str, text: str) -> None:
        """Show the form; `page` and `text` are for readers who have none, as in a saved notebook."""
        from IPython.display import display

        # As ipywidgets 8 gives it; 7, which Colab has, shows a widget by itself alone.
        view = {"version_major": 2, "version_minor": 0, "model_id": self.box.model_id}
        data = {WIDGET: view, "text/html": page, "text/plain": text}
        self._handle = display(data, raw=True, display_id=True)

    def given(self) -> Answer | None:
        """Return what stands in the form, None if nothing does. Raises ValueError if it is no number."""
        value = self.field.value
        if self.choices or not value.strip():
            return value or None
        return numbers.parse(value)

    def _entered(self, _: object, content: dict, __: object) -> None:
        """Enter commits, too; ipywidgets' own name for that is deprecated."""
        if content.get("event") == "submit":
            self.commit()

    def commit(self) -> None:
        """Hand over what stands in the form; say what is missing if nothing does."""
        try:
            answer = self.given()
        except ValueError as error:
            self.message.value = html.escape(str(error))
            return
        if answer is None:
            self.message.value = "Choose one first." if self.choices else "Type a number first."
            return
        page, text = self._commit(answer)
        if self._handle is not None:
            self._handle.update({"text/html": page, "text/plain": text}, raw=True)

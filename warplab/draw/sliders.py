"""Sliders under a picture: the hand changes a number, the picture is drawn again. Without widgets, a picture."""

import base64
import html
import importlib.util
import io
from collections.abc import Callable, Iterable
from typing import Any

from matplotlib.figure import Figure

from warplab.draw.style import DRAWING, Picture, folded

MOST_SLIDERS = 4
MOST_VALUES = 256
WORDS = 6  # values that are not numbers get a button each, up to so many


class Sliders:
    """A picture with a slider for each of its arguments. A notebook shows it as the value of its cell.

    `draw`, `choices`: as `sliders` takes them. `first`: values drawn at first, else each argument's first one.
    `values`: the arguments of the picture that is shown, by name. `png`: that picture.
    """

    def __init__(
        self, draw: Callable[..., Figure], choices: dict[str, list], first: dict[str, Any] | None = None
    ) -> None:
        self.choices = choices
        self._draw = draw
        self.values: dict[str, Any] = {name: options[0] for name, options in choices.items()} | (first or {})
        self.png = self._picture()
        self._view: Any = None

    def show(self, **values: Any) -> None:
        """Draw the picture for other values of some arguments, as moving their sliders does.

        Raises ValueError for an argument without slider and for a value that its slider does not have.
        """
        for name, value in values.items():
            if name not in self.choices:
                raise ValueError(f"there is no slider {name!r}; there are {', '.join(self.choices)}")
            if value not in self.choices[name]:
                raise ValueError(f"{name}={value!r} is not on its slider: {_listed(self.choices[name])}")
        before, self.values = self.values, {**self.values, **values}
        try:
            self.png = self._picture()
        except BaseException:
            self.values = before
            raise

    def _picture(self) -> bytes:
        figure = self._draw(**self.values)
        if not isinstance(figure, Figure):
            raise TypeError(
                f"the function given to sliders() returned {type(figure).__name__}; return a picture, as in "
                "sliders(lambda stride: draw_accesses(copied(stride)), stride=range(1, 9))"
            )
        stream = io.BytesIO()
        self.says = figure.says if isinstance(figure, Picture) else ""
        figure.savefig(stream, format="png", dpi=figure.dpi, facecolor="white")
        return stream.getvalue()

    def widget(self) -> Any:
        """Return the widget: the picture above its sliders. Raises ImportError without ipywidgets."""
        import ipywidgets as widgets

        # Without this a box stretches the picture to its own width.
        natural = widgets.Layout(align_self="flex-start", max_width="calc(100% - 4px)")  # its own margins count
        image, message = widgets.Image(value=self.png, format="png", layout=natural), widgets.HTML()
        image.add_class("jp-needs-light-background")  # as JupyterLab marks pictures outside widgets
        words = widgets.HTML(folded(self.says))

        def moved(name: str) -> Callable[[Any], None]:
            def redraw(change: Any) -> None:
                try:
                    self.show(**{name: change["new"]})
                except Exception as error:  # a learner's kernel may fail in any way
                    message.value = f"<pre>{html.escape(f'{type(error).__name__}: {error}')}</pre>"
                else:
                    image.value, words.value, message.value = self.png, folded(self.says), ""

            return redraw

        controls = []
        for name, options in self.choices.items():
            style = {"description": name.replace("_", " "), "options": options, "value": self.values[name]}
            style["style"] = {"description_width": "7em"}
            buttons = len(options) <= WORDS and not all(type(value) in (int, float) for value in options)
            made = widgets.ToggleButtons(**style) if buttons else _slider(widgets, style)
            made.observe(moved(name), names="value")
            controls.append(made)
        return widgets.VBox([image, words, *controls, message])

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Give a notebook the widget, and the picture to readers who have none, as in a saved notebook."""
        said = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.values.items())
        bundle: dict[str, Any] = {
            "image/png": base64.b64encode(self.png).decode(),
            "text/plain": f"<picture for {said}> {self.says}".strip(),
        }
        if importlib.util.find_spec("ipywidgets"):
            self._view = self._view or self.widget()
            # As ipywidgets 8 gives it; 7 shows a widget by itself alone.
            view = {"version_major": 2, "version_minor": 0, "model_id": self._view.model_id}
            bundle["application/vnd.jupyter.widget-view+json"] = view
        return bundle, DRAWING


def _slider(widgets: Any, style: dict[str, Any]) -> Any:
    made = widgets.SelectionSlider(continuous_update=False, layout=widgets.Layout(width="34em"), **style)
    made.style.handle_color = "#1976d2"  # white on white, as it is by itself, is hard to find
    return made


def sliders(draw: Callable[..., Figure], **ranges: Iterable) -> Sliders:
    """Show the picture that `draw` returns, with a slider for each of its arguments.

    `draw`: a function of keyword arguments that returns a matplotlib figure, such as one that launches your kernel and
    draws it. `ranges`: for each argument its values, as a range or a list; the first ones are drawn at first, also
    where there are no widgets (a saved notebook, a terminal).
    Raises ValueError without a range, with more than four, or with an empty or very long one; TypeError where `draw`
    returns no figure. What `draw` raises at first is raised; later it is shown below the sliders.

        sliders(lambda stride: draw_accesses(copied(stride)), stride=range(1, 33))
    """
    if not callable(draw):
        raise TypeError(f"draw is {draw!r}; give a function, as in sliders(lambda stride: ..., stride=range(1, 9))")
    choices = {name: list(values) for name, values in ranges.items()}
    if not 1 <= len(choices) <= MOST_SLIDERS:
        raise ValueError(f"{len(choices)} sliders; give the values of one to {MOST_SLIDERS} arguments, by name")
    for name, options in choices.items():
        if not 1 <= len(options) <= MOST_VALUES:
            raise ValueError(f"{name} has {len(options)} values; a slider takes 1 to {MOST_VALUES}")
    return Sliders(draw, choices)


def _listed(options: list) -> str:
    few = [str(value) for value in options]
    return ", ".join(few if len(few) <= 8 else [*few[:3], "...", few[-1]])

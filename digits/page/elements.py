"""What panels are made of: labelled controls, escaped HTML, pictures with a text alternative, tables."""

import base64
import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import ipywidgets as widgets

from digits.page.number_field import NumberField

# Every control is as wide as its column, so that a page of 390 px needs no scrolling sideways.
_WIDE = {"width": "100%", "max_width": "28rem"}
_LABELLED = {"description_width": "11rem"}
# Without a tooltip of its own a label would have the tooltip "null".
_SHAPE: dict[str, Any] = {"layout": _WIDE, "style": _LABELLED, "tooltip": ""}


def escape(text: object) -> str:
    """Return a text that may stand in HTML. Whatever a user named goes through here."""
    return html.escape(str(text), quote=True)


def section(title: str, *children: widgets.Widget) -> widgets.VBox:
    """Return a titled part of a panel: a heading, which screen readers list, and what stands below it."""
    return column(note(f"<h3>{escape(title)}</h3>"), *children)


def column(*children: widgets.Widget) -> widgets.VBox:
    """Return widgets below each other."""
    return _classed(widgets.VBox(children), "digits-column")


def row(*children: widgets.Widget) -> widgets.HBox:
    """Return widgets side by side. They wrap where the page is narrow."""
    return _classed(widgets.HBox(children), "digits-row")


def note(markup: str) -> widgets.HTML:
    """Return a piece of HTML. What users named in it must have gone through `escape`."""
    return _classed(widgets.HTML(markup), "digits-note")


def said(text: object, kind: str = "muted") -> str:
    """Return the HTML of a sentence. `kind`: "muted" for one beside the matter, "error" for what is wrong."""
    return f'<p class="digits-{kind}">{escape(text)}</p>' if text else ""


def facts(lines: Mapping[str, object]) -> str:
    """Return the HTML of what there is to know about something: names, and what each says."""
    told = "".join(f"<dt>{name}</dt><dd>{escape(what)}</dd>" for name, what in lines.items())
    return f'<dl class="digits-facts">{told}</dl>'


def progress(share: float, label: str) -> str:
    """Return the HTML of a bar that is full at a share of 1."""
    return f'<progress max="1" value="{share:.4f}" aria-label="{escape(label)}">{100 * share:.0f} %</progress>'


def figure(shown: str, caption: str, kind: str) -> str:
    """Return the HTML of a picture above its caption, which is HTML, too. `kind`: a class of the style sheets."""
    return f'<figure class="{kind}">{shown}<figcaption>{caption}</figcaption></figure>'


def grid(figures: Iterable[str]) -> str:
    """Return the HTML of figures side by side, in as many rows as it takes."""
    return f'<div class="digits-grid">{"".join(figures)}</div>'


def button(label: str, on_click: Callable[[], Any] | None = None, hint: str = "", kind: str = "") -> widgets.Button:
    """Return a button with a text on it, `label`; say the verb first.

    `on_click`: called without arguments; give it through `page.guarded`. `hint`: what it does, shown on hovering; only
    what the label cannot say. `kind`: "primary" for the one thing to do next, "danger" for what cannot be undone.
    """
    made = widgets.Button(description=label, tooltip=hint or None, layout={"width": "auto"})
    if kind:
        made.add_class(f"digits-{kind}")
    if on_click is not None:
        made.on_click(lambda _: on_click())
    return made


def text(label: str, value: str = "", placeholder: str = "") -> widgets.Text:
    """Return a line to type into. Its value changes when the learner leaves it or presses Enter."""
    return widgets.Text(value, description=label, placeholder=placeholder, continuous_update=False, **_SHAPE)


def integer(label: str, value: int, least: int, most: int) -> NumberField:
    """Return a field for a whole number. Reading `value` raises DigitsError while something else is typed into it."""
    return NumberField(label, value, least, most, True, _SHAPE)


def real(label: str, value: float, least: float, most: float) -> NumberField:
    """Return a field for a number. Reading `value` raises DigitsError while something else is typed into it."""
    return NumberField(label, value, least, most, False, _SHAPE)


def check(label: str, value: bool = False) -> widgets.Checkbox:
    """Return a box to tick."""
    return widgets.Checkbox(value, description=label, indent=False, layout={"width": "auto"})


def choice(label: str, options: Iterable[Any] = (("none yet", ""),), value: Any = None) -> widgets.Dropdown:
    """Return a list to choose one from: of `options`, texts, or pairs of a text and what it stands for.

    `value`: what is chosen at first; the first option if None.
    """
    options = list(options)
    made = widgets.Dropdown(options=options, description=label, **_SHAPE)
    if value is not None:
        made.value = value
    return made


def upload(label: str, accept: str = "", multiple: bool = False) -> widgets.FileUpload:
    """Return a button that asks for files. `value` is a tuple of dicts with `name`, `size` and `content` (a buffer)."""
    layout = {"width": "auto"}
    return widgets.FileUpload(accept=accept, multiple=multiple, description=label, layout=layout, tooltip="")


def camera(label: str) -> widgets.FileUpload:
    """Return a button that uploads a photo which the browser takes; see template/…/camera.js. Elsewhere, files."""
    return _classed(upload(label, "image/*"), "digits-camera")


def picture(image: bytes, says: str, width: str = "", pixelated: bool = False) -> str:
    """Return the HTML of a picture; `image`: the file, PNG, JPEG or GIF.

    `says`: what is seen in it, for those who do not see it. `width`: a CSS width; never wider than its column.
    `pixelated`: whether enlarged pixels keep their edges, as in pictures of 8 × 8 pixels.
    """
    kind = "jpeg" if image[:2] == b"\xff\xd8" else "gif" if image[:3] == b"GIF" else "png"
    style = (f"width:{escape(width)};" if width else "") + ("image-rendering:pixelated;" if pixelated else "")
    data = base64.b64encode(image).decode()
    return f'<img src="data:image/{kind};base64,{data}" alt="{escape(says)}" style="{style}">'


def table(head: Sequence[object], rows: Iterable[Sequence[object]], caption: str, numbers: bool = True) -> str:
    """Return the HTML of a table with a caption. Every cell is escaped, but for `Markup`.

    `head`: the titles of the columns. `caption`: what the table shows; it is its name for screen readers, too.
    `numbers`: whether all columns but the first stand to the right, as numbers do.
    """
    titles = "".join(f'<th scope="col">{_cell(title)}</th>' for title in head)
    lines = ""
    for first, *others in rows:
        cells = "".join(f"<td>{_cell(cell)}</td>" for cell in others)
        lines += f'<tr><th scope="row">{_cell(first)}</th>{cells}</tr>'
    kind = "digits-table digits-numbers" if numbers else "digits-table"
    return (
        f'<div class="digits-scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table class="{kind}"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


class Markup(str):
    """HTML that `table` puts into a cell as it is."""


def _cell(cell: object) -> str:
    return str(cell) if isinstance(cell, Markup) else escape(cell)


def _classed(widget: Any, name: str) -> Any:
    widget.add_class(name)
    return widget

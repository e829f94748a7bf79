"""A field for a number that never holds another number than the one that was typed.

The number fields of ipywidgets leave out characters that they do not know: 2.5 becomes 25, 0,01 becomes 1, and what is
too large becomes the limit, without a word.
"""

import html
import math
import re
from collections.abc import Mapping
from typing import Any

import ipywidgets as widgets
import traitlets

from digits.files import DigitsError

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?", re.ASCII | re.IGNORECASE)
_LONGEST_SHOWN = 40  # characters of what was typed that a sentence repeats


class _Number(traitlets.TraitType[Any, Any]):
    """The field's number, held between its limits when it is set; reading it raises what is wrong with the text."""

    default_value = 0
    info_text = "a number"

    def get(self, obj: Any, cls: Any = None) -> Any:
        if obj.wrong:
            raise DigitsError(obj.wrong)
        return super().get(obj, cls)

    def set(self, obj: Any, value: Any) -> None:
        was_wrong, before = bool(obj.wrong), obj._trait_values.get(self.name)
        obj._refuse("")
        super().set(obj, value)
        now = obj._trait_values[self.name]
        obj._write(now)
        if was_wrong and now == before:  # no change of the number, but one that can be read again
            obj._announce()

    def validate(self, obj: Any, value: Any) -> Any:
        if not isinstance(value, int | float) or not math.isfinite(value):
            self.error(obj, value)
        return min(max(int(value) if obj.whole else float(value), obj.min), obj.max)


class NumberField(widgets.VBox):
    """A line to type a number into, and below it what is wrong with it, `wrong`; "" if nothing is.

    Reading `value` raises DigitsError while what is typed is no number, or is beyond the limits, `min` and `max`, so
    that nothing is done with a number that nobody typed; observers of "value" are called then, too. Setting it writes
    it into the field, held between the limits. `description`: the label.
    """

    value = _Number()
    min, max = traitlets.Any(), traitlets.Any()
    description = traitlets.Unicode()

    def __init__(
        self, label: str, value: float, least: float, most: float, whole: bool, shape: Mapping[str, Any]
    ) -> None:
        """Build the field. shape: the layout, style and tooltip of a control."""
        self.whole, self.wrong, self._writing = whole, "", False
        self._line = widgets.Text(
            description=label, continuous_update=False, **{**shape, "layout": {**shape["layout"], "max_width": "none"}}
        )
        self._says = widgets.HTML(layout={"display": "none"})
        self._says.add_class("digits-note")
        super().__init__((self._line, self._says), layout=shape["layout"])
        self.add_class("digits-number")
        self.min, self.max, self.description, self.value = least, most, label, value
        self._line.observe(lambda change: self._typed(), "value")
        self.observe(lambda change: self._limits_changed(), ["min", "max"])
        self.observe(lambda change: setattr(self._line, "description", self.description), "description")

    def restore(self) -> None:
        """Write the last number that could be read, in place of what is typed."""
        self.value = self._trait_values["value"]

    def _typed(self) -> None:
        if self._writing:
            return
        try:
            number = self._number(self._line.value.strip())
        except DigitsError as error:
            self._refuse(f"{self.description}: {error}")
            self._announce()
            return
        self.value = number

    def _number(self, typed: str) -> float:
        shown = repr(typed[:_LONGEST_SHOWN])
        wanted = f"Type {'a whole number' if self.whole else 'a number'} from {told(self.min)} to {told(self.max)}."
        if not typed:
            raise DigitsError(f"there is no number. {wanted}")
        pointed = typed.replace(",", ".")
        if "," in typed and _NUMBER.fullmatch(pointed):
            raise DigitsError(f"{shown} has a comma. Write {pointed}, or leave the comma out.")
        if not _NUMBER.fullmatch(typed):
            raise DigitsError(f"{shown} is no number. {wanted}")
        # A float does not hold every whole number of more than 15 digits.
        number = int(typed) if re.fullmatch(r"[+-]?[0-9]{1,18}", typed) else float(typed)
        if self.whole and math.isfinite(number) and number != int(number):
            raise DigitsError(f"{shown} is no whole number. {wanted}")
        if not self.min <= number <= self.max:
            raise DigitsError(f"{shown} is too {'small' if number < self.min else 'large'}. {wanted}")
        return number

    def _refuse(self, why: str) -> None:
        self.wrong = why
        self._says.value = f'<div role="alert" class="digits-error">{html.escape(why)}</div>' if why else ""
        self._says.layout.display = None if why else "none"

    def _announce(self) -> None:
        number = self._trait_values["value"]
        self.notify_change(traitlets.Bunch(name="value", old=number, new=number, owner=self, type="change"))

    def _limits_changed(self) -> None:
        if not self.wrong and self.min <= self.max:
            self.restore()

    def _write(self, number: float) -> None:
        self._writing = True
        try:
            self._line.value = told(number)
        finally:
            self._writing = False


def told(number: float) -> str:
    """Return a number as it is typed, with all its digits: 15, 0.001, 1e-05."""
    text = repr(number)
    return text[:-2] if text.endswith(".0") else text

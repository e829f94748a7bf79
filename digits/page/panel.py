"""What panels have in common: they are told what the user changes, and change their own controls without being told."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from digits.page.elements import button, escape, note, row


class Panel:
    """A panel of `page`, or a part of one. While it changes its own controls, `_filling` is true."""

    page: Any
    _filling = False

    def _when(self, *controls: Any, call: Callable[[], Any]) -> None:
        """Call `call` whenever the user, and not the panel, changes the value of one of the controls."""
        guarded = self.page.guarded(lambda change: None if self._filling else call())
        for control in controls:
            control.observe(guarded, "value")

    def _follow(self, *names: str, call: Callable[[], Any]) -> None:
        """Call `call` whenever one of these of `page.selected` changes."""
        self.page.selected.observe(self.page.guarded(lambda change: call()), list(names))

    @contextlib.contextmanager
    def _quietly(self) -> Iterator[None]:
        self._filling = True
        try:
            yield
        finally:
            self._filling = False

    def _refill(self, control: Any, options: list | None, value: Any) -> None:
        """Give a control a value, and new options if it has any, without taking that for a choice of the user."""
        # In one message: between two of them a list would show something that nobody chose.
        with self._quietly(), control.hold_sync():
            if options is not None and list(control.options) != options:
                control.options = options
            control.value = value

    def _offer(self, control: Any, found: list[tuple[str, str]], *wanted: str) -> str:
        """Let a list offer what was found, (title, id), and show the first of `wanted` that is there, else the first.

        Returns the id that it shows; "" where nothing was found.
        """
        ids = [id for _, id in found] or [""]
        shown = next((id for id in wanted if id in ids), ids[0])
        self._refill(control, found or [("none yet", "")], shown)
        return shown


class Deletion:
    """A `button`, "Delete …", and the `question` that stands between it and the deed: a row with answers, which is
    hidden until the button is pressed."""

    def __init__(self, page: Any, asks: Callable[[], str], delete: Callable[[], Any]) -> None:
        """Take `asks`, saying what would be gone for good, and `delete`, called on yes after hiding the question."""
        self._asks, self._delete, self._says = asks, delete, note("")
        self.button = button("Delete …", page.guarded(self._ask))
        yes = button("Yes, delete it", page.guarded(self._agreed), kind="danger")
        self.question = row(self._says, yes, button("No, keep it", page.guarded(self.withdraw)))
        self.withdraw()

    def withdraw(self) -> None:
        """Hide the question."""
        self.question.layout.display = "none"

    def _ask(self) -> None:
        self._says.value = f"<p>{escape(self._asks())}</p>"
        self.question.layout.display = None

    def _agreed(self) -> None:
        self.withdraw()
        self._delete()

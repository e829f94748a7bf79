"""Text that students chose, such as names of files and messages, on a terminal and in a table."""

import re
import unicodedata

# Where a spreadsheet may take text for a formula: at the start of a cell, and at that of a piece, since spreadsheets
# split lines at the separator of their locale. The last four are the full-width forms, which some take for the others.
_FORMULA = re.compile(r"(^|[;,|\t\r\n])([ \t\xa0\"']*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")


def on_terminal(text: str, lines: bool = True) -> str:
    """Return text that moves no cursor, colours nothing, reorders nothing: control characters as escape sequences.

    `lines`: line ends stay.
    """
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in _CONTROLS and not (lines and character == "\n")
        else character
        for character in text
    )


# Cc: control characters. Cf: what a terminal does not show, such as marks that reverse the direction of writing. Cs:
# half a surrogate pair, which cannot be written. Zl, Zp: other line ends. Co: whatever a font makes of it.
_CONTROLS = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))


def in_table(text: str) -> str:
    """Return text that no spreadsheet takes for a formula, whatever its separator, in one line."""
    return _FORMULA.sub(r"\1\2'", on_terminal(" ".join(text.splitlines())))

"""Links inside a built book: which of them lead nowhere."""

import functools
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links.update(given[name] or "" for name in ("href", "src") if name in given)
        self.ids.update(given[name] or "" for name in ("id", "name") if name in given)


@functools.cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def dead(html: Path) -> list[str]:
    """Return "PAGE: LINK" of each link to a file or an anchor of the book that is not there."""
    found = []
    for path in sorted(html.rglob("*.html")):
        for link in sorted(_read(path).links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = target.is_file() and target.is_relative_to(html.resolve())
            named = not parts.fragment or target.suffix != ".html" or (there and _anchored(target, parts.fragment))
            if not (there and named):
                found.append(f"{path.relative_to(html)}: {link}")
    return found


def _anchored(page: Path, fragment: str) -> bool:
    return unquote(fragment) in _read(page).ids

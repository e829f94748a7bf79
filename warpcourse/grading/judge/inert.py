"""What students wrote, made inert for the browsers of instructors and students: no script, no request, no disguise.

These functions may take very long for hostile input, so they are called through `sandbox.limited`. What they return is
inert in every page that shows it: in nbgrader's formgrader, which renders markdown with raw HTML and `javascript:`
links on the Jupyter server's own origin, in feedback pages, and in JupyterLab.
"""

import html
import html.parser
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

import nh3
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from warpcourse.grading.exchange.artefacts import clean_text

PICTURES = ("image/png", "image/jpeg", "image/gif")
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
# Files that a browser shows without running anything, or only saves. Students' others stay in submitted/.
_TEXT_FILES = {".cfg", ".csv", ".ini", ".json", ".log", ".md", ".rst", ".toml", ".tsv", ".txt", ".yaml", ".yml"}
_SOURCE_FILES = {".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".ptx", ".py"}
_DATA_FILES = {".bin", ".dat", ".npy", ".npz", ".gif", ".jpeg", ".jpg", ".png"}
INERT_FILES = _TEXT_FILES | _SOURCE_FILES | _DATA_FILES

_SIZES = {"width", "height"}
_TAGS = nh3.ALLOWED_TAGS - {"area", "map"}
_ATTRIBUTES = {
    "*": {"title", "lang", "dir"},
    "a": {"href"},
    "img": {"src", "alt", *_SIZES},
    "ol": {"start"},
    "td": {"colspan", "rowspan", "align", "style"},
    "th": {"colspan", "rowspan", "align", "style"},
    "table": {"border"},
    # Only those that colour code; others would take part in the formgrader's own page.
    **{tag: {"class"} for tag in ("code", "div", "pre", "span")},
}
_CLASSES = re.compile(r"highlight|err|[a-z][a-z0-9]?")
_LINK = re.compile(r"(?:https?://|mailto:|#)[^\x00-\x20]*", re.IGNORECASE)
_PICTURE = re.compile(rf"data:(?:{'|'.join(PICTURES)});base64,[A-Za-z0-9+/=]*")
_LENGTH = re.compile(r"\d{1,4}(?:px|%)?")


def _attribute(tag: str, name: str, value: str) -> str | None:
    """Return the value of an allowed attribute, None to leave it out."""
    if name == "class":
        return " ".join(word for word in value.split() if _CLASSES.fullmatch(word)) or None
    allowed = {("a", "href"): _LINK, ("img", "src"): _PICTURE, ("img", "width"): _LENGTH, ("img", "height"): _LENGTH}
    pattern = allowed.get((tag, name))
    return value if pattern is None or pattern.fullmatch(value.strip()) else None


_cleaner = nh3.Cleaner(
    tags=_TAGS,
    clean_content_tags={"script", "style", "template", "noscript", "title", "textarea", "select"},
    attributes=_ATTRIBUTES,
    attribute_filter=_attribute,
    strip_comments=True,
    link_rel="noopener noreferrer nofollow",
    url_schemes={"http", "https", "mailto", "data"},  # data only for pictures: see _attribute
    filter_style_properties={"text-align"},
)


def inert_html(text: str) -> str:
    """Return HTML without scripts, forms, frames, styles, ids, and addresses that a browser loads by itself."""
    return clean_text(_cleaner.clean(text))  # whose marks may have been written as &#769;


def inert_markdown(source: str, attachments: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """Return markdown that shows the same as `source`, but inert: `source` itself if it is.

    `attachments`: name -> MIME type -> content in base64. They become part of the result. Raises whatever the renderer
    raises for `source`; `literally` cannot fail.
    """
    rendered = rendered_markdown(source, inert_attachments(attachments or {}))
    if "<" not in source and not attachments and _is_plain(rendered):
        return source
    return _block(inert_html(rendered))


def inert_attachments(attachments: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """Return the pictures among a cell's attachments."""
    return {
        name: {mime: data for mime, data in bundle.items() if mime in PICTURES and BASE64.fullmatch(data)}
        for name, bundle in attachments.items()
    }


def rendered_markdown(source: str, attachments: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """Return the HTML that nbconvert makes of markdown; it may hold anything."""
    given = {name: dict(bundle) for name, bundle in (attachments or {}).items()}
    renderer = IPythonRenderer(escape=False, attachments=given, exclude_anchor_links=True)
    return str(MarkdownWithMath(renderer=renderer).render(source))


def literally(text: str) -> str:
    """Return markdown that shows `text` as it is, in a monospaced font."""
    return _block(f"<pre>{html.escape(text)}</pre>")


def plain(text: str) -> str:
    """Return markdown that shows `text` as it is, within a line."""
    # Everything but letters, digits and spaces, so that nothing means anything: in markdown, in HTML, in TeX.
    return re.sub(r"[^\w ]|_", lambda found: f"&#{ord(found[0])};", text)


def shown_inertly(path: str) -> bool:
    """Return whether a file may lie where a server would hand it to the instructor's browser."""
    suffix = PurePosixPath(path).suffix.lower()
    return suffix in INERT_FILES or not suffix


def _block(text: str) -> str:
    """Return inert HTML as markdown that every renderer passes on unchanged: one HTML block in one line."""
    codes = {"\n": "&#10;", "\r": "&#13;", "\\": "&#92;", "$": "&#36;", "`": "&#96;"}
    return f"<div>{''.join(codes.get(character, character) for character in text)}</div>"


class _Links(html.parser.HTMLParser):
    """Notes whether something is there that `inert_html` would change, in HTML that a renderer wrote."""

    plain = True

    def handle_data(self, data: str) -> None:
        self.plain &= clean_text(data) == data

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if (tag, name) in (("a", "href"), ("img", "src")):
                self.plain &= _attribute(tag, name, value or "") is not None


def _is_plain(rendered: str) -> bool:
    links = _Links()
    links.feed(rendered)
    links.close()
    return links.plain

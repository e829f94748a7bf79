"""What the book adds to Sphinx: pictures' words as text alternatives, words of the glossary that open, MathML."""

from __future__ import annotations

import inspect
import re
from html import escape, unescape

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

from warpcourse.paths import COURSE

WORDS = re.compile(r"<summary>In words</summary>(.*?)</details>", re.DOTALL)
GLOSSARY = "docs/glossary"
# Words of the glossary that plain English and formulas use in other senses: they are linked nowhere.
PLAIN = {
    "B",
    "F",
    "block",
    "device",
    "estimate",
    "event",
    "grid",
    "guard",
    "host",
    "launch",
    "pass",
    "request",
    "thread",
}
EVERYWHERE = {"00", "01", "02"}  # what these labs explain is one thing in all of them
CLOSED = (nodes.title, nodes.reference, nodes.literal, nodes.literal_block, nodes.raw, nodes.math, nodes.caption)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", inline_renderers=(_math, None), block_renderers=(_math, None))
    app.connect("doctree-read", _pictures)
    app.connect("doctree-read", _languages)
    app.connect("doctree-resolved", _terms)
    app.connect("autodoc-process-docstring", _docstring)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _pictures(app: Sphinx, doctree: nodes.document) -> None:
    """Give each picture the words that a lesson shows below it; refuse a picture without."""
    waiting: list[nodes.image] = []
    for node in doctree.findall(lambda node: isinstance(node, nodes.image | nodes.raw)):
        if isinstance(node, nodes.raw):
            if waiting and (words := WORDS.search(node.astext())):
                waiting.pop()["alt"] = unescape(re.sub("<[^>]*>", "", words[1])).strip()
        elif not node.get("alt"):
            waiting.append(node)
    if waiting:
        raise ValueError(f"{app.env.docname}: {len(waiting)} pictures without words, such as {waiting[0]['uri']}")


def _languages(app: Sphinx, doctree: nodes.document) -> None:
    """Colour cells of CUDA C++ as such."""
    for block in doctree.findall(nodes.literal_block):
        first = block.astext().partition("\n")[0]
        if first.startswith("%%"):
            block["language"] = "cuda" if first.startswith("%%cuda") else "text"


def glossary(page: str) -> dict[str, tuple[str, str]]:
    """Return {word: (anchor on the glossary's page, meaning)} of the rows of docs/glossary.md that `page` may link.

    A plain word, such as "step", is that of its own lab alone.
    """
    found = {}
    for line in (COURSE / f"{GLOSSARY}.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 3 and cells[0] != "Word" and cells[0].strip("-"):
            labs, meaning = re.findall(r"\d\d", cells[2]), re.sub(r"\[([^]]*)\]\([^)]*\)|[*`]", r"\1", cells[1])
            here = not EVERYWHERE.isdisjoint(labs) or page.startswith(tuple(f"notebooks/{lab}" for lab in labs))
            for word in re.split(r"[,;]\s*", re.sub(r"\s*\([^)]*\)", "", cells[0])):
                if word not in PLAIN and (here or not re.fullmatch("[a-z]+", word)):
                    found[word] = (_anchor(cells[0]), meaning)
    return found


def _anchor(words: str) -> str:
    return "term-" + nodes.make_id(re.sub(r"\([^)]*\)", "", words))


def _terms(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Link the first use of each of the glossary's words on a page; name the rows of the glossary itself."""
    if page == GLOSSARY:
        for row in doctree.findall(nodes.row):
            row[0]["ids"].append(_anchor(row[0].astext()))
        return
    words = glossary(page)
    if app.builder.format != "html" or not page.startswith(("notebooks/", "docs/")):
        return
    to_glossary = app.builder.get_relative_uri(page, GLOSSARY)
    for text in list(doctree.findall(nodes.Text)):
        if not _open(text):
            continue
        parts, rest = "", text.astext()
        while match := _pattern(words).search(rest):
            word = next(word for word in words if match[1] in (word, word.capitalize()))
            anchor, meaning = words[word]
            words = {other: entry for other, entry in words.items() if entry[0] != anchor}
            tip = f'class="term" href="{to_glossary}#{anchor}" data-meaning="{escape(meaning)}"'
            parts += f"{escape(rest[: match.start()])}<a {tip}>{escape(match[0])}</a>"
            rest = rest[match.end() :]
        if parts:
            text.parent.replace(text, nodes.raw("", parts + escape(rest), format="html"))


def _pattern(words: dict[str, tuple[str, str]]) -> re.Pattern[str]:
    alternatives = [form for word in sorted(words, key=len, reverse=True) for form in {word, word.capitalize()}]
    return re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, alternatives)) or '(?!)'})s?(?![\w-]| Lab)")


def _open(text: nodes.Text) -> bool:
    """Whether a text is prose that may hold a link."""
    node, in_paragraph = text.parent, False
    while node is not None:
        if isinstance(node, CLOSED):
            return False
        in_paragraph |= isinstance(node, nodes.paragraph)
        node = node.parent
    return in_paragraph


def _math(writer, node: nodes.Node) -> None:
    """Write a formula as MathML."""
    block = isinstance(node, nodes.math_block)
    formula = re.sub(r"\\[bB]ig(?![a-z])", "", node.astext().strip())  # brackets grow by themselves
    try:
        writer.body.append(latex2mathml.tex2mathml(formula, as_block=block))
    except MathError as error:
        logging.getLogger(__name__).warning("formula %s: %s", node.astext(), error, location=node)
    raise nodes.SkipNode


def _docstring(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Make reStructuredText of a docstring, whose `code` stands between single marks and whose samples are indented."""
    blocks = inspect.cleandoc("\n".join(lines)).split("\n\n")
    made = []
    for block in blocks:
        rows = block.split("\n")
        sample = next((i for i, row in enumerate(rows) if row.startswith(("    ", ">>> "))), None)
        prose = rows[:sample]
        if prose and prose[0]:
            made += [re.sub(r"`+([^`]+)`+", r"``\1``", row) if "`" in row else _escaped(row) for row in prose] + [""]
        if sample is not None:
            made += ["::", "", *("    " + row for row in rows[sample:]), ""]
    lines[:] = made


def _escaped(row: str) -> str:
    return re.sub(r"([*|\\]|_(?!\w))", r"\\\1", row)

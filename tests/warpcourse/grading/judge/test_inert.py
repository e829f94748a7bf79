"""What students wrote, made inert: by what nbconvert makes of it, and for random mixtures of hostile pieces."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpcourse.grading.judge import inert, untrusted
from warpcourse.grading.judge.inert import inert_html, inert_markdown, literally, plain, rendered_markdown
from warpcourse.grading.judge.untrusted import Reading, Unusable

URLS = {"href", "src", "action", "formaction", "xlink:href", "data", "srcset", "background", "poster", "cite", "ping"}
PIXEL = "iVBORw0KGgo="


class Found(HTMLParser):
    """What in a page may do something: tags, attributes and addresses that are not allowed."""

    def __init__(self, page):
        super().__init__()
        self.active, self.text = [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        if tag not in inert._TAGS:
            self.active.append(tag)
        for name, value in attributes:
            scheme = (value or "").strip().lower()
            if name in URLS and not scheme.startswith(("http://", "https://", "mailto:", "#", "data:image/")):
                self.active.append((tag, name, value))
            if name in ("src", "srcset") and not scheme.startswith("data:image/"):
                self.active.append((tag, name, value))
            if name.startswith("on") or name in ("id", "name", "srcdoc"):
                self.active.append((tag, name, value))

    def handle_data(self, data):
        self.text += data


PIECES = (
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "<img src=http://evil.example/x.png>",
    "<svg onload=alert(1)>",
    "<style>*{background:url(//evil)}</style>",
    "<math><mtext><table><mglyph><style><!--</style>",
    "<noscript><p title='</noscript>",
    "<!--", "-->", "<![CDATA[", "]]>", "<?php", "?>", "<a href=", "\">", "'>", "</p>", "<div>", "</div>", "</pre>",
    "[a](javascript:alert(1))",
    "![a](http://evil.example/x.png)",
    "![a](attachment:a)",
    "<javascript:alert(1)>",
    "[a][b]\n\n[b]: javascript:alert(1)\n",
    "[a](data:text/html,x)",
    "[a](/tree)", "[a](//evil.example)", "[a](java\tscript:1)", "[a](&#106;avascript:1)", "javascript&colon;alert(1)",
    "<iframe src=/tree></iframe>", "<form action=/x><input name=y>", "<base href=//evil>", "<meta http-equiv=refresh>",
    "$$", "$", "\\begin{a}", "\\end{a}", "\\\\[", "\\\\]", "`", "```", "```mermaid\n", "~~~",
    "    ", "\t", "\n", "\n\n", "> ", "- ",
    "1. ", "# ", "| a | b |\n|--|--|\n| ", "a < b & c", "&lt;", "&#60;", "\\", "*", "_", "text", "é",
)  # fmt: skip


def opened(markdown):
    """Return what is active in a cell as the formgrader shows it."""
    return Found(rendered_markdown(markdown)).active


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_no_mixture_of_hostile_pieces_is_active(text):
    attachments = {"a": {"image/svg+xml": "PHN2Zz4=", "image/png": PIXEL}}
    assert opened(literally(text)) == []
    assert Found(inert_html(text)).active == []
    try:
        shown = inert_markdown(text, attachments)
    except Exception:  # nbconvert cannot render it; `Reading` shows it literally then
        return
    assert opened(shown) == []
    assert opened(inert_markdown(shown)) == []


@given(st.text())
def test_any_text_is_shown_as_it_is(text):
    text = "".join(c for c in text if c.isprintable())
    assert Found(rendered_markdown(literally(text))).text.rstrip("\n") == text
    page = Found(rendered_markdown(f"**x** {plain(text)}"))
    assert page.active == []
    assert page.text.strip().removeprefix("x").split() == text.split()


@pytest.mark.parametrize(
    "text",
    [
        "# Title\n\nA *word*, `a_b` and [a link](https://example.org/x).",
        "| a | b |\n|---|--:|\n| 1 | 2 |",
        "$x^2$ and\n\n```python\nprint(1)\n```",
        "mail me: [me](mailto:a@b.c), [above](#x)",
    ],
)
def test_harmless_markdown_stays_as_it_was(text):
    assert inert_markdown(text) == text


def test_harmful_markdown_keeps_what_is_harmless():
    shown = rendered_markdown(inert_markdown("## A\n\n- **b** <img src=x onerror=y> if `c` < $d$\n\n```cuda\ne\n```"))
    for part in ("<h2>A</h2>", "<strong>b</strong>", "<code>c</code>", "&lt; $d$", '<span class="n">e</span>'):
        assert part in shown.replace("&#36;", "$"), part


def test_pictures_that_are_attached_stay():
    shown = inert_markdown("![my plot](attachment:p.png)", {"p.png": {"image/png": PIXEL}})
    assert f'src="data:image/png;base64,{PIXEL}"' in shown


def test_tables_of_data_frames_keep_their_form():
    cells = '<th>a</th><td colspan="2">1</td>'
    table = f'<table border="1" class="dataframe"><tr style="text-align: right;">{cells}</tr></table>'
    assert inert_html(table) == f'<table border="1"><tbody><tr>{cells}</tr></tbody></table>'


@pytest.mark.parametrize("name", ["a.py", "data/x.csv", "A.PNG", "Makefile", "x.npz"])
def test_files_that_do_nothing_in_a_browser(name):
    assert inert.shown_inertly(name)


@pytest.mark.parametrize(
    "name", ["a.html", "a.HTM", "a.svg", "a.xml", "a.xhtml", "a.py.html", "a.js", "a.pdf", "a.ipynb"]
)
def test_files_that_may_do_something(name):
    assert not inert.shown_inertly(name)


def test_what_takes_too_long_is_left_out_and_later_text_still_read(monkeypatch):
    monkeypatch.setattr(untrusted._process(), "seconds", 1)
    reading = Reading()
    assert reading.html("".join(f"<font color={i}><p>" for i in range(20_000))) == untrusted.LEFT_OUT
    slow = "\\begin{a}" * 110_000
    shown = reading.markdown(slow)
    assert shown.startswith("<div><pre>[This cell is shown without its layout")
    assert rendered_markdown(shown).count("begin{a}") == 110_000
    assert reading.html("<b>x</b>") == "<b>x</b>"


def test_a_submission_has_a_budget_for_all_its_text(monkeypatch):
    reading = Reading()
    reading._left = 0.0
    assert reading.html("<b>x</b>") == untrusted.LEFT_OUT
    assert "without its layout" in reading.markdown("x")
    with pytest.raises(Unusable, match="no processor time"):
        reading.notebook(b"{}")


def test_vast_metadata_is_refused_and_does_not_fill_the_judge():
    def notebook(piece):
        filling = piece * (32_000_000 // len(piece))
        return b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {"a": [' + filling + b'{}]}, "cells": []}'

    assert Reading().notebook(notebook(b"{},")) == []
    with pytest.raises(Unusable, match="1024 MiB of memory") as refused:
        Reading().notebook(notebook(b'{"":{"":0}},'))
    assert refused.value.status == "limit"


def test_accents_without_end_are_cut_however_they_are_written():
    piled = "a" + "&#769;" * 1000
    for found in (inert.inert_html(f"<p>{piled}</p>"), inert.inert_markdown(piled), inert.inert_markdown(f"*{piled}*")):
        assert 1 < found.count("\u0301") <= 64
        assert "&#769;" not in found
    assert inert.inert_markdown("Zoe\u0308 &#769;") == "Zoe\u0308 &#769;"

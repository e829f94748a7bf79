"""The book: what becomes of links and pictures, and that a small one builds without a warning, a dead link or an
answer."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from nbformat import v4, writes

from tests.support import chromium
from tests.support.waiting import until
from tools.book import links, sources

KNOWN = {"index.md", "docs/glossary.md", "notebooks/01_vector_multiply.ipynb"}
HERE = "notebooks/00_start_here.ipynb"


@pytest.mark.parametrize(
    ("text", "without", "base"),
    [
        ("[words](../docs/glossary.md#Warp)", "[words](../docs/glossary.md#warp)", None),
        ("[home](../README.md)", "[home](../index.md)", None),
        ("[below](#The-claim)", "[below](#the-claim)", None),
        ("[out](https://example.org/a.md)", "[out](https://example.org/a.md)", None),
        ("`kernel[grid](x)`, ``a[0](`x`)``", "`kernel[grid](x)`, ``a[0](`x`)``", None),
        ("```\nkernel[grid](x)\n```\n", "```\nkernel[grid](x)\n```\n", None),
        ("![seen](../docs/accesses.png)", "![seen](../docs/accesses.png)", None),
        (
            "[a file](../kernels/matmul/peak.cu)",
            "a file (`kernels/matmul/peak.cu`)",
            "[a file](https://example.org/blob/kernels/matmul/peak.cu)",
        ),
        (
            "[`kernels/matmul/peak.cu`](../kernels/matmul/peak.cu)",
            "`kernels/matmul/peak.cu`",
            "[`kernels/matmul/peak.cu`](https://example.org/blob/kernels/matmul/peak.cu)",
        ),
    ],
)
def test_links(text, without, base):
    assert sources.linked(text, HERE, KNOWN, "") == without
    assert sources.linked(text, HERE, KNOWN, "https://example.org/blob/") == (base or without)


def test_a_link_to_no_file_is_refused():
    with pytest.raises(ValueError, match=r"00_start_here\.ipynb: the link \.\./docs/nowhere\.md leads to no file"):
        sources.linked("[lost](../docs/nowhere.md)", HERE, KNOWN, "")


def test_an_answer_in_a_lesson_is_refused():
    cell = v4.new_code_cell("compare(1)", metadata={"tags": ["reveal"]}, outputs=[v4.new_output("stream", text="1")])
    with pytest.raises(ValueError, match="answers a question and has outputs"):
        sources.notebook(writes(v4.new_notebook(cells=[cell])), HERE, KNOWN, "")


def test_a_picture_that_was_saved_without_words_gets_those_of_the_page_of_pictures():
    picture = v4.new_output("display_data", {"image/png": "", "text/plain": "<Figure>"})
    cell = v4.new_code_cell("draw()", id="start-14", outputs=[picture])
    read = json.loads(sources.notebook(writes(v4.new_notebook(cells=[cell])), HERE, KNOWN, ""))
    _, words = read["cells"][0]["outputs"]
    assert "<summary>In words</summary>twice, 4 × 32" in words["data"]["text/html"]
    assert json.loads(sources.notebook(json.dumps(read), HERE, KNOWN, "")) == read


def test_dead_links_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<a id="here" href="b.html#there"><img src="c.png"><a href="#gone"><a href="x:y">')
    (tmp_path / "b.html").write_text('<p id="there"><a href="a.html#here"><a href="a.html#no"><a href="../a.html">')
    assert links.dead(tmp_path) == ["a.html: #gone", "a.html: c.png", "b.html: ../a.html", "b.html: a.html#no"]


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    pytest.importorskip("myst_nb", reason="needs requirements-book.txt (make setup-book)")
    from tools.book.__main__ import build

    folder = tmp_path_factory.mktemp("book")
    pages = [HERE, "notebooks/05_tensor_cores.ipynb", "docs/glossary.md", "docs/run.md", "docs/trust.md"]
    assert build(folder, [*pages, "docs/labs.md", "docs/teaching/syllabi.md"], api=False) == 0
    return folder / "html"


def test_the_book_shows_pictures_with_words_and_no_answer(book):
    for lesson in ("00_start_here", "05_tensor_cores"):
        page = (book / "notebooks" / f"{lesson}.html").read_text()
        cells = re.split(r'(?=<div class="cell[ "])', page)[1:]
        hidden = [cell for cell in cells if re.match(r'<div class="cell[^"]* tag_reveal', cell)]
        assert hidden, lesson
        assert not any("cell_output" in cell for cell in hidden)
        pictures = re.findall(r"<img [^>]*_images/[^>]*>", page)
        assert len(pictures) > 5
        assert all(re.search(r'alt="[^"]{10}', picture) for picture in pictures)
        assert "<details open" not in page
        assert page.count("<details>") > 15


def test_the_book_opens_words_and_draws_formulas_by_itself(book):
    page = (book / "notebooks" / "05_tensor_cores.html").read_text()
    assert re.search(r'<a class="term" href="\.\./docs/glossary\.html#term-warp" data-meaning="32 threads', page)
    assert page.count('#term-warp"') == 1
    assert "#term-step" not in page  # lab 10's word, in another sense here
    assert "<math " in page
    assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?//[^"]*"', page)
    front = (book / "index.html").read_text()
    assert "4 bytes past the end of array `a`" in front
    assert "global load sectors" in front
    assert "H100 SXM5 80 GB HBM3: about" in front


@pytest.mark.skipif(bool(chromium.missing()), reason=chromium.missing())
def test_pages_fit_a_phone_in_both_themes_and_words_open(book):
    with served(book) as address, chromium.chromium() as browser:
        for width in (1280, 390):
            browser.size(width, 844)
            for theme in ("light", "dark"):
                browser.open(f"{address}/index.html")
                browser.run("localStorage.setItem('theme', arguments[0])", theme)
                for page in ("index", "notebooks/05_tensor_cores", "docs/glossary", "docs/trust"):
                    browser.open(f"{address}/{page}.html")
                    wide = "const page = document.documentElement; return page.scrollWidth - page.clientWidth"
                    assert browser.run(wide) == 0, (page, width)
                    (red, *_) = map(int, re.findall(r"\d+", browser.run(COLOUR)))
                    assert (red < 64) == (theme == "dark"), (page, theme)
        browser.open(f"{address}/notebooks/05_tensor_cores.html")
        said = "return getComputedStyle(document.querySelector('a.term'), '::after').content"
        assert browser.run(said) == "none"
        browser.run("document.querySelector('a.term').focus({ focusVisible: true })")
        assert len(browser.run(said)) > 20
        browser.open(f"{address}/search.html?q=coalescing")
        until(lambda: "glossary" in browser.run("return document.getElementById('search-results').innerHTML"), "a find")


COLOUR = "return getComputedStyle(document.body).backgroundColor"


@contextlib.contextmanager
def served(folder):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()

"""The book: what becomes of links and pictures, and that a small one builds without a warning, a dead link or an
answer."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import threading
from html import escape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from nbformat import v4, writes

from tests.support import chromium
from tests.support.waiting import until
from tools import pictures_page
from tools.book import links, sources
from warpcourse.bench.lab import labs

KNOWN = {"index.md", "docs/glossary.md"}
HERE = "notebooks/a_lesson.ipynb"
LESSONS = [lesson.notebook for lab in labs() for lesson in lab.lessons]
# The first lesson, and the first with formulas.
BUILT = dict.fromkeys([*LESSONS[:1], *[path for path in LESSONS if "$$" in path.read_text(encoding="utf-8")][:1]])


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
            "[a file](../warplab/report/profile.py)",
            "a file (`warplab/report/profile.py`)",
            "[a file](https://example.org/blob/warplab/report/profile.py)",
        ),
        (
            "[`warplab/report/profile.py`](../warplab/report/profile.py)",
            "`warplab/report/profile.py`",
            "[`warplab/report/profile.py`](https://example.org/blob/warplab/report/profile.py)",
        ),
    ],
)
def test_links(text, without, base):
    assert sources.linked(text, HERE, KNOWN, "") == without
    assert sources.linked(text, HERE, KNOWN, "https://example.org/blob/") == (base or without)


def test_the_front_page_leads_to_what_the_set_up_needs():
    link = ("[README.md](../../README.md)", sources.FRONT, KNOWN)
    assert sources.linked(*link, "") == "README.md"
    assert sources.linked(*link, "https://example.org/blob") == "[README.md](https://example.org/blob/README.md)"


def test_a_link_to_no_file_is_refused():
    with pytest.raises(ValueError, match=r"a_lesson\.ipynb: the link \.\./docs/nowhere\.md leads to no file"):
        sources.linked("[lost](../docs/nowhere.md)", HERE, KNOWN, "")


def test_an_answer_in_a_lesson_is_refused():
    cell = v4.new_code_cell("compare(1)", metadata={"tags": ["reveal"]}, outputs=[v4.new_output("stream", text="1")])
    with pytest.raises(ValueError, match="answers a question and has outputs"):
        sources.notebook(writes(v4.new_notebook(cells=[cell])), HERE, KNOWN, "")


def test_a_picture_that_was_saved_without_words_gets_those_of_the_page_of_pictures():
    lesson, part = next(iter(pictures_page.sections().items()))
    name, said = re.findall(r"^- `([^`]+)`: (.*)", part, re.MULTILINE)[0]
    picture = v4.new_output("display_data", {"image/png": "", "text/plain": "<Figure>"})
    cell = v4.new_code_cell("draw()", id=name, outputs=[picture])
    read = json.loads(sources.notebook(writes(v4.new_notebook(cells=[cell])), f"notebooks/{lesson}.ipynb", KNOWN, ""))
    _, words = read["cells"][0]["outputs"]
    assert words["data"]["text/html"] == f"<details><summary>In words</summary>{escape(said)}</details>"
    assert json.loads(sources.notebook(json.dumps(read), f"notebooks/{lesson}.ipynb", KNOWN, "")) == read


def test_pictures_that_are_not_drawn_on_white_keep_their_brightness_in_the_dark():
    cells = []
    for about in ({"needs_background": "light"}, {}):
        picture = v4.new_output("display_data", {"image/png": ""}, metadata=about)
        cells.append(v4.new_code_cell("draw()", metadata={"tags": ["shown"]}, outputs=[picture]))
    read = json.loads(sources.notebook(writes(v4.new_notebook(cells=cells)), "notebooks/none.ipynb", KNOWN, ""))
    assert [cell["metadata"]["tags"] for cell in read["cells"]] == [["shown"], ["photo", "shown"]]


def test_no_picture_is_without_words():
    told = re.findall(r"^- `([^`]+)`: (.*)$", pictures_page.PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(told) > 100
    assert [cell for cell, words in told if not re.search(r"\w", words)] == []


def test_dead_links_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<a id="here" href="b.html#there"><img src="c.png"><a href="#gone"><a href="x:y">')
    (tmp_path / "b.html").write_text('<p id="there"><a href="a.html#here"><a href="a.html#no"><a href="../a.html">')
    assert links.dead(tmp_path) == ["a.html: #gone", "a.html: c.png", "b.html: ../a.html", "b.html: a.html#no"]


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    pytest.importorskip("myst_nb", reason="needs requirements-book.txt (make setup-book)")
    from tools.book.__main__ import build

    folder = tmp_path_factory.mktemp("book")
    pages = [*(f"notebooks/{path.name}" for path in BUILT), "docs/glossary.md", "docs/run.md", "docs/trust.md"]
    assert build(folder, [*pages, "docs/labs.md", "docs/teaching/syllabi.md"], api=False) == 0
    return folder / "html"


def test_the_book_shows_pictures_with_words_and_no_answer(book):
    for lesson in BUILT:
        page = (book / "notebooks" / f"{lesson.stem}.html").read_text()
        cells = re.split(r'(?=<div class="cell[ "])', page)[1:]
        hidden = [cell for cell in cells if re.match(r'<div class="cell[^"]* tag_reveal', cell)]
        assert hidden, lesson
        assert not any("cell_output" in cell for cell in hidden)
        pictures = re.findall(r"<img [^>]*_images/[^>]*>", page)
        assert len(pictures) > 5
        assert all(re.search(r'alt="[^"]{10}', picture) for picture in pictures)
        assert "<details open" not in page
        assert page.count("<details>") > 15


def test_a_plain_word_is_linked_in_the_lessons_of_its_own_lab_alone():
    pytest.importorskip("myst_nb", reason="needs requirements-book.txt (make setup-book)")
    from tools.book.extension import glossary

    assert "step" in glossary("notebooks/10_a_lesson")
    assert "step" not in glossary("notebooks/05_a_lesson")
    assert {"warp", "Nsight Compute"} <= glossary("docs/trust").keys()


def test_the_book_opens_words_and_draws_formulas_by_itself(book):
    page = (book / "notebooks" / f"{list(BUILT)[-1].stem}.html").read_text()
    linked = re.findall(r'<a class="term" href="\.\./docs/glossary\.html#([\w-]+)" data-meaning="[^"]{10}', page)
    assert len(linked) == len(set(linked)) > 5
    assert "<math " in page
    assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?//[^"]*"', page)
    front = (book / "index.html").read_text()
    assert "4 bytes past the end of array `a`" in front
    assert "global load sectors" in front
    assert "README.md" in front
    assert ">Warp</a> Lab" not in (book / "docs" / "run.html").read_text()
    assert "H100 SXM5 80 GB HBM3: about" in front


def test_addresses_outside_the_book_are_asked(tmp_path, capfd):
    pytest.importorskip("myst_nb", reason="needs requirements-book.txt (make setup-book)")
    from tools.book.__main__ import _sphinx

    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "there.html").write_text("there")
    (tmp_path / "source").mkdir()
    with served(tmp_path / "web") as address:
        for name, failed in (("there", False), ("gone", True)):
            (tmp_path / "source" / "index.md").write_text(f"# A page\n\n[out]({address}/{name}.html)\n")
            assert bool(_sphinx(tmp_path, "linkcheck", "outside")) == failed, name
    assert "gone.html" in "".join(capfd.readouterr())


@pytest.mark.skipif(bool(chromium.missing()), reason=chromium.missing())
def test_pages_fit_a_phone_in_both_themes_and_words_open(book):
    lesson = f"notebooks/{list(BUILT)[-1].stem}"
    with served(book) as address, chromium.chromium() as browser:
        for width in (1280, 390):
            browser.size(width, 844)
            for theme in ("light", "dark"):
                browser.open(f"{address}/index.html")
                browser.run("localStorage.setItem('theme', arguments[0])", theme)
                for page in ("index", lesson, "docs/glossary", "docs/trust"):
                    browser.open(f"{address}/{page}.html")
                    wide = "const page = document.documentElement; return page.scrollWidth - page.clientWidth"
                    assert browser.run(wide) == 0, (page, width)
                    (red, *_) = map(int, re.findall(r"\d+", browser.run(COLOUR)))
                    assert (red < 64) == (theme == "dark"), (page, theme)
                    turned = browser.run(
                        "return [...document.querySelectorAll('article img')].map(i =>"
                        " [!i.closest('.tag_photo'), getComputedStyle(i).filter])"
                    )
                    assert all(("invert" in how) == (drawn and theme == "dark") for drawn, how in turned), (page, theme)
        browser.open(f"{address}/{lesson}.html")
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

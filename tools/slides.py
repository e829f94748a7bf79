"""Slides of a lesson's pictures: `python -m tools.slides 01` writes them into _build/slides.

A slide for the title, one for the claim, one for each picture that the lesson shows before anything is solved, with the
heading and the paragraph above it and its words below. One file per notebook, which fetches nothing: arrows, space or a
touch turn pages, and the browser prints them, a slide a page.
"""

import re
import sys
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path

import nbformat
from nbconvert.filters.markdown_mistune import markdown2html_mistune

from tools.book.sources import with_words
from warpcourse.bench.lab import labs
from warpcourse.paths import COURSE

FOLDER = COURSE / "_build" / "slides"
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>
body {{ margin: 0; font: 1.6rem/1.4 system-ui, sans-serif; color: #1a1a1a; background: #fff; }}
section {{ box-sizing: border-box; height: 100vh; padding: 4vh 6vw; display: flex; flex-direction: column;
  justify-content: center; gap: 2vh; break-after: page; overflow: auto; }}
h1, h2, p {{ margin: 0; }} h2 {{ font-size: 1em; color: #666; }}
img {{ max-width: 100%; max-height: 60vh; object-fit: contain; align-self: center; min-width: 60%; }}
small {{ font-size: .55em; color: #555; }}
</style>
{slides}
<script>
const slides = document.querySelectorAll("section");
const turn = (by) => {{
  const now = Math.round(scrollY / innerHeight);
  slides[Math.max(0, Math.min(slides.length - 1, now + by))].scrollIntoView();
}};
addEventListener("keydown", (event) => {{
  const by = {{ ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 }}[event.key];
  if (by) {{ event.preventDefault(); turn(by); }}
}});
</script>
</html>
"""


def slides(path: Path) -> Iterator[str]:
    """Yield the slides of a notebook as HTML."""
    heading, above = "", ""
    notebook = with_words(nbformat.read(path, as_version=4), path.stem)
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            text = re.sub(r"<details>.*?</details>", "", cell.source, flags=re.DOTALL)
            parts = [part.strip() for part in text.split("\n\n") if part.strip()]
            if parts and parts[0].startswith("#"):
                heading = parts.pop(0).lstrip("# ").replace("`", "")
            above = parts[-1] if parts else ""
            if number == 0:
                yield f"<section><h1>{escape(heading)}</h1>{_html(above)}</section>"
            elif heading.startswith("The claim") and parts:
                yield f"<section><h2>{escape(heading)}</h2>{_html(parts[0])}</section>"
            continue
        if "check" not in cell.metadata.get("tags", ()):
            for picture, words in _pictures(cell.outputs):
                shown = f'<img alt="{escape(words)}" src="data:image/png;base64,{picture}">'
                said = f"<small>{escape(words)}</small>" if words else ""
                yield f"<section><h2>{escape(heading)}</h2>{_html(above)}{shown}{said}</section>"
                above = ""


def _pictures(outputs: list) -> Iterator[tuple[str, str]]:
    shown = [output.get("data", {}) for output in outputs]
    for data, after in zip(shown, [*shown[1:], {}], strict=False):
        if "image/png" in data:
            words = re.search("<summary>In words</summary>(.*?)</details>", after.get("text/html", ""), re.DOTALL)
            yield "".join(data["image/png"].split()), unescape(words[1]) if words else ""


def _html(markdown: str) -> str:
    return re.sub(r"<a [^>]*>(.*?)</a>", r"\1", markdown2html_mistune(markdown), flags=re.DOTALL)


def main(numbers: list[str]) -> int:
    """Write the slides of these labs, of all if none is named."""
    lessons = [lesson for lab in labs() for lesson in lab.lessons if not numbers or lesson.slug[:2] in numbers]
    if not lessons:
        print(f"error: no lab has the number {' or '.join(numbers)}", file=sys.stderr)
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    for lesson in lessons:
        target = FOLDER / f"{lesson.slug}.html"
        made = list(slides(lesson.notebook))
        target.write_text(PAGE.format(title=escape(lesson.slug), slides="\n".join(made)), encoding="utf-8")
        print(f"{target}: {len(made)} slides")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What a learner sees before he answers does not hold the answer.

Of exercises: no line of a solution, and no number of its predictions. Of lessons: no result of a prediction that its
`compare` works out from constants, neither in a text nor in the code of that cell, which is folded; results of runs are
not looked for. Hints may say more, but no whole line.
"""

from __future__ import annotations

import ast
import html
import math
import re
from collections.abc import Iterator

import nbformat
import numpy as np
import pytest
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.support.exercise_answers import cell_id, is_solution, source_notebook
from warpcourse.paths import COURSE

TOPICS = sorted(path.stem for path in (COURSE / "exercises").glob("*/*.ipynb"))
CHARACTERISTIC = 20  # characters of a line without blanks; shorter ones stand in any kernel
# Lines of solutions that a text gives on purpose: the call of a function that the problem explains, the index that
# every kernel begins with, the formula that a lesson is about.
GIVEN = {
    "05_tensor_cores": {"wgmma<K_MAJOR, K_MAJOR>(sum, k_major(shared_address(own), 0, depth),"},
    "07_training": {"return exaflop * 1e6 / (hours * 3600)"},
    "08_recomputation": {"int i = blockIdx.x * blockDim.x + threadIdx.x;"},
    "10_collectives": {"held = [array.copy() for array in arrays]", "__threadfence_system();"},
    "12_digits": {"optimizer.build(network.trainable_variables)"},
}


def flat(text: str) -> str:
    return re.sub(r"\s+", "", html.unescape(text))


def read(path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def texts(notebook: NotebookNode) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def unfolded(text: str) -> str:
    """Return a text as the page shows it: of what is folded, the summary."""
    return re.sub(r"(?s)</summary>.*?</details>", "</summary>", text)


def solution_parts(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """Yield problems, and the code of each of their marked regions, without comments."""
    for cell in filter(is_solution, notebook.cells):
        comment = r"[ ]*//.*" if cell.source.startswith("%%cuda") else r"[ ]*#.*"
        for part in re.findall(r"BEGIN SOLUTION[^\n]*\n(.*?)\n[^\n]*END SOLUTION", cell.source, re.DOTALL):
            yield cell_id(cell), re.sub(comment, "", part)


def lines_in_sight(solution: NotebookNode, release: NotebookNode, lesson: NotebookNode) -> list[str]:
    """List the characteristic lines of solutions that stand in a text; what the exercise's code gives is no secret."""
    given = flat("\n".join(cell.source for cell in release.cells if cell.cell_type == "code"))
    seen = flat("\n".join(texts(release) + texts(lesson)))
    lines = [(problem, line.strip()) for problem, part in solution_parts(solution) for line in part.splitlines()]
    return [
        f"{problem}: {line}"
        for problem, line in lines
        if len(flat(line)) >= CHARACTERISTIC and flat(line) in seen and flat(line) not in given
    ]


def forms(value: float) -> set[str]:
    """Return how a text may write a number."""
    rounded = {f"{value:.{digits}g}" for digits in (3, 4, 9)}
    percent = {f"{100 * value:.{digits}g}%" for digits in (2, 3)} if 0 < value < 1 else set()
    return rounded | percent | {f"{value:,.0f}"} if value == round(value) else rounded | percent


def holds(text: str, value: float) -> bool:
    text = text.replace(" %", "%").replace(" × ", "×")  # a factor of a size is none of its numbers
    return any(re.search(rf"(?<![\w.,×]){re.escape(form)}(?![\w%³×]|[.,]\d)", text) for form in forms(value))


def distinctive(value: float | str) -> bool:
    """Return whether a result is a number of three digits and more, which stands nowhere by chance."""
    return not isinstance(value, str) and len(f"{value:.3g}".strip("0").replace(".", "")) >= 3


def numbers_in_sight(solution: NotebookNode, release: NotebookNode, lesson: NotebookNode) -> list[str]:
    """List the predicted numbers that stand in a line together with what they are asked for.

    A number of three digits and more counts anywhere, unless a question has it.
    """
    found = []
    for problem, part in solution_parts(solution):
        if not part.lstrip().startswith("prediction = "):
            continue
        predicted = eval(part.split("=", 1)[1], {"math": math, "np": np})  # the course's own solution
        seen = [line for text in texts(release) + texts(lesson) for line in unfolded(text).splitlines()]
        for asked, value in predicted.items():
            special = distinctive(value) and not any(holds(key, value) for key in predicted)
            beside = [line for line in seen if special or flat(asked) in flat(line)]
            found += [f"{problem}, {asked}: {line}" for line in beside if holds(line.replace(asked, ""), value)]
    return found


def notebooks(topic: str) -> tuple[NotebookNode, NotebookNode, NotebookNode]:
    return source_notebook(topic), *(
        read(COURSE / path) for path in (f"exercises/{topic}/{topic}.ipynb", f"notebooks/{topic}.ipynb")
    )


@pytest.mark.parametrize("topic", TOPICS)
def test_no_line_of_a_solution_stands_in_a_text(topic):
    found = lines_in_sight(*notebooks(topic))
    assert {line.split(": ", 1)[1] for line in found} <= GIVEN.get(topic, set()), found


@pytest.mark.parametrize("topic", TOPICS)
def test_no_predicted_number_stands_beside_its_question(topic):
    assert numbers_in_sight(*notebooks(topic)) == []


def results(cell: NotebookNode) -> Iterator[tuple[str, float | str]]:
    """Yield keys and results of the calls of `compare` in a code cell whose result is worked out from constants."""
    code = "\n".join(line for line in cell.source.splitlines() if not line.startswith("%"))
    try:
        tree = ast.parse(code)
    except SyntaxError:  # CUDA C++
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "compare":
            key, value = node.args[:2]
            if {name.id for name in ast.walk(value) if isinstance(name, ast.Name)} <= {"math", "round", "min", "np"}:
                yield ast.literal_eval(key), eval(ast.unparse(value), {"math": math, "np": np})


def results_in_sight(lesson: NotebookNode) -> list[str]:
    """List the results that stand before their `compare`: in the text above the
    question, in its form, in a text below, and those of three digits in the first text and in any heading.

    A question's own numbers, and the choices, are no secret.
    """
    found, headings = [], re.findall(r"(?m)^#+ .*", "\n".join(texts(lesson)))
    for place, cell in enumerate(lesson.cells):
        for key, value in results(cell) if cell.cell_type == "code" else ():
            asked = next(
                k for k, c in enumerate(lesson.cells) if c.cell_type == "code" and f'predict("{key}"' in flat(c.source)
            )
            question = lesson.cells[asked].source
            near = lesson.cells[max(1, asked - 1) : place]
            seen = [unfolded(cell.source) for cell in near if cell.cell_type == "markdown"]
            seen += [unfolded(lesson.cells[0].source), *headings] * distinctive(value)
            shown = "".join(str(output.get("data", output)) for output in lesson.cells[asked].outputs)
            seen += re.findall(r"answer=([\d.,/]+)", shown)  # the form's example; its choices hold the result
            for text in seen:
                if isinstance(value, str):
                    here = value in text and len(value.split()) >= 3  # two words are a term
                else:
                    here = holds(text, value) and not holds(question, value)
                found += [f"{key} = {value}: {text}"] * here
    return found


@pytest.mark.parametrize("path", sorted((COURSE / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_result_of_a_prediction_stands_before_it(path):
    assert results_in_sight(read(path)) == []


@pytest.mark.parametrize("path", sorted((COURSE / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_compare_spells_its_choice_out(path):
    told = [result for cell in read(path).cells if cell.cell_type == "code" for result in results(cell)]
    assert [key for key, value in told if isinstance(value, str)] == []


@pytest.mark.parametrize("path", sorted((COURSE / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_code_that_works_a_result_out_is_folded(path):
    cells = [cell for cell in read(path).cells if cell.cell_type == "code" and list(results(cell))]
    assert [cell.id for cell in cells if not cell.metadata.get("jupyter", {}).get("source_hidden")] == []


LINE = "return len({(start + size * index) // 32 for index in indices})"
SOLVED = f"""### BEGIN SOLUTION
prediction = {{"a[3 * i]": 12, "2048 + 100 × 3": 2448}}
### END SOLUTION
def sectors(indices, size, start):
    ### BEGIN SOLUTION
    {LINE}
    ### END SOLUTION
"""


@pytest.mark.parametrize(
    ("text", "lines", "numbers"),
    [
        ("Sectors of a request.", 0, 0),
        (f"<details><summary>Hint 3</summary><code>{html.escape(LINE)}</code></details>", 1, 0),
        ("<summary>Why does a[3 * i] take 12?</summary>", 0, 1),
        ("<details><summary>Why?</summary>a[3 * i] takes 12.</details>", 0, 0),
        ("Twelve is not 12.", 0, 0),  # beside no question
        ("## A sum of 2,448", 0, 1),
    ],
)
def test_a_planted_line_and_a_planted_number_are_found(text, lines, numbers):
    about = {"nbgrader": {"solution": True, "grade_id": "sectors"}}
    solution = new_notebook(cells=[new_code_cell(SOLVED, metadata=about)])
    seen, empty = new_notebook(cells=[new_markdown_cell(text)]), new_notebook()
    for release, lesson in ((seen, empty), (empty, seen)):
        assert lines_in_sight(solution, release, lesson) == [f"sectors: {LINE}"] * lines
        assert len(numbers_in_sight(solution, release, lesson)) == numbers


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Registers of a block.", 0),
        ("## Why 232 registers and no more", 1),
        ("<details><summary>Once you have run it: why?</summary>It takes 232.</details>", 0),
        ("A tile of 232 × 64.", 0),
    ],
)
def test_a_planted_result_of_a_lesson_is_found(text, found):
    asked, told = (
        new_code_cell('predict("05/registers", "How many?")'),
        new_code_cell('compare("05/registers", 240 - 8)'),
    )
    planted, first = new_markdown_cell(text), new_markdown_cell("# 05")
    for cells in ([first, planted, asked, told], [first, asked, planted, told], [planted, first, asked, told]):
        results = {result.split(" ")[0] for result in results_in_sight(new_notebook(cells=cells))}
        assert results == {"05/registers"} if found else results == set()
    asked.outputs = [new_output("display_data", {"text/plain": "add answer=232) to the call"})]
    assert len(results_in_sight(new_notebook(cells=[first, asked, told]))) == 1

"""README's table, docs/labs.md and the labs' pages say what records, recordings, lessons and exercises say."""

import dataclasses
import json
import re

import nbformat
import pytest

from tools import labs_page
from warpcourse.bench.lab import Lab, labs
from warpcourse.bench.recordings import Recordings

LABS = [lab for lab in labs() if labs_page.has_page(lab)]
RUN = "run make pages"


def written(lab):
    return (lab.folder / "README.md").read_text(encoding="utf-8")


def test_the_readme_has_the_table_of_these_labs():
    text = labs_page.README.read_text(encoding="utf-8")
    assert text == labs_page.readme(text), RUN
    for lab in labs():
        assert f"[{lab.title}](notebooks/{lab.lessons[0].slug}.ipynb)" in text


def test_a_readme_without_marks_is_an_error():
    with pytest.raises(ValueError, match="put both around the table of labs"):
        labs_page.readme("# Warp Lab\n")


def test_a_planned_lab_is_shown_until_there_is_one_of_its_number(monkeypatch, tmp_path):
    planned = [{"number": lab.number, "title": "planned", "claim": ""} for lab in labs()]
    planned.append({"number": 99, "title": "The last", "claim": "a claim"})
    monkeypatch.setattr(labs_page, "PLANNED", tmp_path / "planned.json")
    labs_page.PLANNED.write_text(json.dumps(planned))
    table = labs_page.readme_table().splitlines()
    assert len(table) == 2 + len(labs()) + 1
    assert table[-1] == "| 99 | The last | a claim | planned |"


def test_the_index_is_up_to_date():
    assert labs_page.INDEX.read_text(encoding="utf-8") == labs_page.index(), RUN


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.slug)
def test_a_labs_page_is_up_to_date(lab):
    assert written(lab) == labs_page.page(lab), RUN
    folder = lab.folder / "pictures"
    assert {path.name: path.read_bytes() for path in folder.glob("*")} == labs_page.pictures(lab), RUN


@pytest.mark.thorough
@pytest.mark.parametrize("lab", [lab for lab in LABS if lab.counted], ids=lambda lab: lab.slug)
def test_what_a_lesson_counts_is_up_to_date(lab, monkeypatch):
    monkeypatch.setenv("WARPLAB_BACKEND", "simulator")
    text = (lab.folder / labs_page.COUNTED).read_text(encoding="utf-8")
    assert text == labs_page.counts(lab), "run python -m tools.labs_page --count"


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.slug)
def test_links_lead_somewhere(lab):
    targets = re.findall(r"\]\(([^)]+)\)", written(lab))
    assert targets
    assert not [target for target in targets if not (lab.folder / target).exists()]
    assert not [
        target
        for target in re.findall(r"\]\(([^)]+)\)", labs_page.INDEX.read_text(encoding="utf-8"))
        if not (labs_page.INDEX.parent / target).exists()
    ]


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A lab with a lesson, a benchmark and launches, of which nothing is measured yet."""
    monkeypatch.setattr(Lab, "folder", tmp_path / "kernels" / "topic")
    monkeypatch.setattr(Lab, "notebook", tmp_path / "lesson.ipynb")
    monkeypatch.setattr(Lab, "recordings", Recordings("kernels.topic", course=tmp_path))
    Lab.folder.mkdir(parents=True)
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# A lesson")]), Lab.notebook)
    return Lab("kernels.topic", "77_topic", "A lesson", benchmark="benchmark", launches="launches", code_cells=1)


def test_what_is_not_there_yet_is_said(made):
    text = labs_page.page(made)
    assert f"## Kernels\n\n{labs_page.NOT_MEASURED}\n\n## Counters\n\n{labs_page.NOT_COUNTED}" in text
    assert f"## Time without a GPU\n\n{labs_page.NOT_TIMED}" in text
    assert "## Verdict" not in text
    assert "## Exercise" not in text
    assert "## Pictures" not in text


def test_a_lab_without_a_lesson_has_a_page_too(made):
    text = labs_page.page(dataclasses.replace(made, code_cells=0, simulator=False, gpus=4))
    assert text.startswith("# 77 A lesson\n")
    assert "Runs on: 4 GPUs.\n\n## Kernels" in text
    assert "Time without a GPU" not in text


def test_what_has_come_is_shown(made, monkeypatch):
    class Tables:
        tables = ("ladder", "shapes")
        not_recorded = frozenset({"sizes"})

        def text(self, values, machines):
            return " and ".join(f"{key} {value}" for key, value in values.items())

    monkeypatch.setattr(Lab, "module", lambda self, name: type("module", (), {"BENCHMARK": Tables()}))
    for key, device in (("ladder", "NVIDIA A"), ("shapes", "NVIDIA B"), ("sweep", "NVIDIA A")):
        made.recordings.write(key, f"of {device}", {"device": device, "date": "today"})
    (made.folder / labs_page.COUNTED).write_text("| step | sectors |\n")
    (made.folder / "counters.md").write_text("# Counters\n\n12 launches under `ncu`: all equal.\n")
    times = {what: {"wall": 61.2, "processor": 30.9} for what in ("lesson", "exercise")}
    (made.folder / "times.json").write_text(json.dumps({"device": "a computer", "date": "today", "load": 4.5, **times}))
    text = labs_page.page(made)
    assert "NVIDIA A, today.\n\n```text\nladder of NVIDIA A\n```\n\nNVIDIA B, today.\n\n```text\nshapes of" in text
    assert "```\n\nNot measured on a GPU yet: sizes. `make record` measures it.\n" in text
    assert "12 launches under `ncu`: all equal. [Which, and why](counters.md)." in text
    assert "What the lesson counts in the simulator:\n\n| step | sectors |\n" in text
    assert "The lesson runs in 61 s from first to last cell (31 s of processor time), the check of" in text
    assert "; a computer at a load of 4.5, today." in text


def test_a_picture_of_a_cell_that_is_gone_is_an_error(made):
    with pytest.raises(ValueError, match=r"lesson\.ipynb has no cell gone; correct `shown` in lab\.py"):
        labs_page.pictures(dataclasses.replace(made, shown={"gone": "something"}))


def test_a_verdict_holds_what_was_recorded_and_nothing_of_the_last_run():
    def cell(*lines):
        return nbformat.v4.new_code_cell("", outputs=[nbformat.v4.new_output("stream", text="\n".join(lines) + "\n")])

    lesson = nbformat.v4.new_notebook(
        cells=[
            cell("before the verdict"),
            nbformat.v4.new_markdown_cell("## Verdict"),
            cell("Claim: one", "2 s, measured on A", "3 s, recorded on B"),
            cell(
                "Claim: two",
                "measured on A:",
                "4 s",
                "5 s",
                "recorded on B:",
                "6 s",
                "",
                "Claim: three",
                "7, by arithmetic",
            ),
            cell("8 s, measured on A", "9 s"),
            cell("10, by arithmetic"),
            nbformat.v4.new_markdown_cell("### Your turn"),
            cell("11, by arithmetic"),
            nbformat.v4.new_markdown_cell("## Going further"),
            cell("behind the verdict"),
        ]
    )
    assert labs_page._verdict(lesson).splitlines() == [
        *("Claim: one", "3 s, recorded on B", "Claim: two", "recorded on B:", "6 s"),
        *("Claim: three", "7, by arithmetic", "10, by arithmetic", "11, by arithmetic"),
    ]

"""docs/labs.md says what recordings, counters, lessons and exercises say."""

import json
import re

import nbformat

from tools import labs_page
from warplab.bench.recordings import Recordings
from warplab.paths import COURSE


def test_the_page_is_up_to_date():
    written = labs_page.PAGE.read_text(encoding="utf-8")
    assert written == labs_page.page(), "run: python tools/labs_page.py"


def test_every_lab_has_its_parts():
    written = labs_page.PAGE.read_text(encoding="utf-8")
    labs = re.split(r"^## ", written, flags=re.MULTILINE)[1:]
    assert [lab[:2] for lab in labs] == [name[:2] for name in labs_page.LABS]
    for lab, (_, about) in zip(labs, labs_page.LABS.items(), strict=True):
        parts = re.findall(r"^### (.+)$", lab, flags=re.MULTILINE)
        assert parts[:6] == ["Kernels", "Counters", "Pictures", "Verdict", "Exercise", "Time without a GPU"]
        assert lab.count("![") >= 2
        assert " NO\n" not in lab  # an output that was wrong
        measured = Recordings(about.topic).path.exists()
        assert ("### Kernels\n\nNVIDIA " in lab) == measured
        assert (labs_page.NOT_MEASURED in lab) == (not measured)


def test_the_pictures_are_those_of_the_lessons():
    shown = {path.name: path.read_bytes() for path in labs_page.PICTURES.iterdir()}
    assert shown == labs_page.pictures(), "run: python tools/labs_page.py"


def test_what_is_not_there_yet_is_said_and_then_taken(monkeypatch, tmp_path):
    monkeypatch.setattr(labs_page, "Recordings", lambda topic: Recordings(topic, tmp_path))
    monkeypatch.setattr(labs_page, "TIMES", tmp_path / "times.json")
    monkeypatch.setattr(labs_page, "TRIED", {})
    labs_page.TIMES.write_text('{"device": "a computer", "date": "today", "seconds": {}}')
    name = "05_tensor_cores"
    lab = labs_page.LABS[name]._replace(tables=lambda values: f"a table of {values['ladder']}")
    before = "\n\n".join(labs_page.section(name, lab))
    assert f"### Kernels\n\n{labs_page.NOT_MEASURED}\n\n### Counters" in before
    assert f"### Time without a GPU\n\n{labs_page.NOT_TIMED}" in before
    assert "newcomer" not in before

    (tmp_path / lab.topic).mkdir()
    recording = {"device": "NVIDIA Something", "date": "today", "values": {"ladder": "rates"}}
    (tmp_path / lab.topic / "recordings.json").write_text(json.dumps(recording))
    seconds = {name: {what: {"wall": 61.2, "processor": 30.9} for what in ("lesson", "exercise")}}
    labs_page.TIMES.write_text(json.dumps({"device": "a computer", "date": "today", "seconds": seconds}))
    monkeypatch.setitem(labs_page.TRIED, name, [("a gap", "closed")])
    after = "\n\n".join(labs_page.section(name, lab))
    assert "### Kernels\n\nNVIDIA Something, today.\n\n```text\na table of rates\n```" in after
    assert "61 s from its first cell to its last (31 s of processor time)" in after
    assert "### Tried as a newcomer\n\n| what did not work | what was changed |\n| --- | --- |\n| a gap |" in after


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
        ]
    )
    assert labs_page._verdict(lesson).splitlines() == [
        *("Claim: one", "3 s, recorded on B", "Claim: two", "recorded on B:", "6 s"),
        *("Claim: three", "7, by arithmetic", "10, by arithmetic"),
    ]


def test_links_lead_somewhere():
    written = labs_page.PAGE.read_text(encoding="utf-8")
    counters = (COURSE / "docs" / "counters.md").read_text()
    headings = {re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in re.findall(r"^## (.+)$", counters, re.M)}
    for target in re.findall(r"\]\(([^)]+)\)", written):
        path, _, anchor = target.partition("#")
        assert (COURSE / "docs" / path).exists(), target
        assert not anchor or anchor in headings, target

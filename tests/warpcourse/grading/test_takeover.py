"""What instructors and students open of a submission, in a real browser: nothing of a student's runs there."""

from __future__ import annotations

import shutil

import pytest
from bs4 import BeautifulSoup
from nbgrader.converters import GenerateFeedback

from tests.support.attack_harness import NAME, Target, attacks, autograde_by_stock_nbgrader, grade, taken_over
from tests.support.chromium import missing
from tests.support.grading_harness import HereWorkers
from warpcourse.grading.course import feedback_page
from warpcourse.grading.course.nbgrader_course import Course

ATTACKS = [attack for attack in attacks() if attack.name.startswith("page/")]
in_a_browser = pytest.mark.skipif(missing() != "", reason=missing())


@in_a_browser
def test_no_script_of_a_student_runs_in_the_formgrader_or_in_feedback(tmp_path, zygotes):
    target = Target(tmp_path)
    target.hand_in_all(ATTACKS)
    records = grade(target, ATTACKS, HereWorkers(zygotes))
    assert {record["status"] for record in records.values()} == {"graded"}
    assert taken_over(target, ATTACKS) == {attack.name: "" for attack in ATTACKS}
    # What was harmful is gone, and the rest is there to be read.
    page = (tmp_path / "grading" / "feedback" / "page-markdown" / NAME / f"{NAME}.html").read_text()
    assert "<summary>1</summary>" in page
    assert "<script" not in page


@in_a_browser
@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")  # of nbgrader's
def test_the_same_submissions_take_over_stock_nbgrader(tmp_path):
    """Without this, attacks that attack nothing would look like a good defence."""
    # The others' pages are not opened: megabytes of accents keep Chromium busy for minutes there.
    effective = [attack for attack in ATTACKS if attack.stock]
    target = Target(tmp_path, without_kernel=True)
    target.hand_in_all(effective)
    autograde_by_stock_nbgrader(target)
    assert taken_over(target, effective) == {attack.name: "took over" for attack in effective}


def test_pages_of_nbgraders_own_command_are_inert_too(tmp_path, zygotes):
    target = Target(tmp_path)
    target.hand_in_all(ATTACKS)
    grade(target, ATTACKS, HereWorkers(zygotes))
    course = Course(tmp_path)
    course.directory.assignment_id = NAME
    shutil.rmtree(tmp_path / "grading" / "feedback")
    GenerateFeedback(coursedir=course.directory, config=course.config).start()
    followed = []
    for attack in ATTACKS:
        page = (tmp_path / "grading" / "feedback" / attack.student / NAME / f"{NAME}.html").read_text()
        assert feedback_page.POLICY in page
        assert "<script" not in page
        elements = BeautifulSoup(page, "html.parser").find_all
        loaded = [element["src"] for element in elements(src=True)] + [
            element["href"] for element in elements(href=True) if element.name != "a"
        ]
        assert [address for address in loaded if not address.startswith("data:image/")] == []
        # What a student links to opens by a click only, and cannot reach back to the page.
        left = [link for link in elements("a", href=True) if not link["href"].startswith("#")]
        assert all("noopener" in link["rel"] for link in left)
        followed += [link["href"] for link in left]
    assert set(followed) == {"http://127.0.0.1:9/"}

"""nbgrader's settings for this course: run `nbgrader` commands in this folder.

solutions/ is the source folder, exercises/ the release folder. What belongs to a class (submissions, graded copies,
feedback, the gradebook) lies in grading/, which is not in the repository.
"""

import contextlib
import os
import sys

course = os.path.dirname(os.path.abspath(__file__))
grading = os.path.join(course, "grading")

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "warplab"
c.CourseDirectory.root = course
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.submitted_directory = os.path.join("grading", "submitted")
c.CourseDirectory.autograded_directory = os.path.join("grading", "autograded")
c.CourseDirectory.feedback_directory = os.path.join("grading", "feedback")
c.CourseDirectory.db_url = "sqlite:///" + os.path.join(grading, "gradebook.db")
with contextlib.suppress(OSError):  # a learner may have the course where they cannot write
    os.makedirs(grading, exist_ok=True)  # SQLite makes the file, not its folder

# An empty line is the one stub that is valid in a Python cell and in a %%cuda cell.
c.ClearSolutions.code_stub = {"python": ""}
c.Execute.timeout = 120  # seconds a cell; the slowest test cell takes a few
# Otherwise each kernel starts with a warning on the terminal.
c.Execute.extra_arguments = ["--IPKernelApp.log_level=ERROR"]

# Test cells run apart from the student's code, which runs in a sandbox, and feedback shows no hidden tests: also with
# nbgrader's own commands; for a class, `python -m warplab grade` is faster. As names, imported when they are used.
c.Autograde.sanitize_preprocessors = [
    "nbgrader.preprocessors.ClearOutput",
    "warpcourse.grading.course.autograde.RestoreNames",
    "nbgrader.preprocessors.DeduplicateIds",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "warpcourse.grading.course.autograde.OverwriteTests",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    "warpcourse.grading.course.autograde.SandboxedExecute",
    "nbgrader.preprocessors.IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "warpcourse.grading.course.feedback_page.HideHiddenTests",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
c.GenerateFeedback.exporter_class = "warpcourse.grading.course.feedback_page.InertPages"
# nbgrader's own follow links and believe names that any student can forge, or end at the first submission that is odd.
c.ExchangeFactory.collect = "warpcourse.grading.course.exchange_collect.Collect"
c.ExchangeFactory.release_feedback = "warpcourse.grading.course.release_feedback.ReleaseFeedback"


def put_first(variable, folder):
    folders = os.environ.get(variable, "").split(os.pathsep)
    if folder not in folders:
        os.environ[variable] = os.pathsep.join(filter(None, [folder, *folders]))


# A submission runs in grading/autograded/STUDENT/TOPIC, where `import warplab` must find this course.
put_first("PYTHONPATH", course)
sys.path.append(course)
# nbgrader starts `alembic` by name, also where the environment is not activated.
put_first("PATH", os.path.dirname(sys.executable))

"""nbgrader's settings for this course: run `nbgrader` commands in this folder.

solutions/ is the source folder, exercises/ the release folder. What belongs to a class (submissions, graded copies,
feedback, the gradebook) lives under grading/, which is not in the repository.
"""

import os

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

# An empty line is the one stub that is valid in a Python cell and in a %%cuda cell.
c.ClearSolutions.code_stub = {"python": ""}
c.Execute.timeout = 120  # seconds a cell; the slowest test cell takes a few

# A submission runs in grading/autograded/STUDENT/TOPIC, where `import warplab` must find this course.
paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
if course not in paths:
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [course, *paths]))

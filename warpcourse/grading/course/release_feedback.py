"""`nbgrader release_feedback`, which one submission cannot stop. Named in nbgrader_config.py.

nbgrader finds a student's page in the exchange by a secret that came with the submission. What an instructor put there
by hand has none, and what a student handed in as one may be anything.
"""

import glob
import os
import re
from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseFeedback

from warpcourse.grading.course import machine
from warpcourse.grading.course.submissions import SECRET, TIMESTAMP


class ReleaseFeedback(ExchangeReleaseFeedback):
    """nbgrader's own, page by page: those that cannot be released are named in one warning."""

    src_path: str

    def copy_files(self) -> None:
        excluded = set(filter(None, (self.coursedir.student_id_exclude or "").split(",")))
        left_out = []
        for folder in sorted(glob.glob(self.src_path)):
            student = self._student(folder)
            if student in excluded or not glob.glob(os.path.join(glob.escape(folder), "*.html")):
                continue
            if not _came_through_the_exchange(folder):
                left_out.append(folder)
                continue
            self.src_path = glob.escape(folder)
            try:
                super().copy_files()
            except OSError as error:
                if machine.at_fault(error):
                    self.fail(f"Not all feedback was released: {machine.told(error, Path(self.dest_path))}")
                self.log.error("No feedback released for %s (%s)", student, error)
        if left_out:
            pages = "\n".join(page for folder in left_out for page in glob.glob(f"{glob.escape(folder)}/*.html"))
            count = "1 page was" if len(left_out) == 1 else f"{len(left_out)} pages were"
            self.log.warning(
                f"{count} not released, because the submission did not come through the exchange, which would have "
                f"written {SECRET} and {TIMESTAMP}; send them to the students in another way:\n{pages}"
            )

    def _student(self, folder: str) -> str:
        """Return whose feedback folder this is."""
        directory = self.coursedir
        expression = directory.format_path(
            directory.feedback_directory, "(?P<student>[^/]+)", re.escape(directory.assignment_id), escape=True
        )
        match = re.fullmatch(expression, folder)
        return match["student"] if match else folder


def _came_through_the_exchange(folder: str) -> bool:
    """Return whether nbgrader can read what it needs: both files, and a secret in the first that is none if empty."""
    try:
        texts = []
        for name in (SECRET, TIMESTAMP):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                texts.append(file.read())
    except (OSError, UnicodeDecodeError):
        return False
    return bool(texts[0].strip())

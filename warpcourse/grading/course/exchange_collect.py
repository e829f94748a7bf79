"""`nbgrader collect`, which takes what is a student's own, and of that plain files alone. Named in nbgrader_config.py.

Every student can write to the exchange. nbgrader's own collects the last hand-in under a name whoever made it (it
warns), follows links with the instructor's rights, and ends, for the whole class, at the first odd name or file.
"""

import datetime
import os
import pwd
import stat
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeCollect

from warpcourse.grading.course import machine, submissions
from warpcourse.grading.course.plain_text import on_terminal


class Collect(ExchangeCollect):
    """nbgrader's own, hand-in by hand-in: what is left out, and why, is a warning."""

    src_records: list[dict[str, Any]]

    def init_src(self) -> None:
        super().init_src()
        self.src_records = [record for record in self.src_records if record["username"]]

    def _path_to_record(self, path: str) -> dict[str, Any]:
        """Return whose hand-in a folder is and of when; nobody's, if it is not that student's who it says."""
        try:
            record, status = super()._path_to_record(path), os.lstat(path)
            who = record["username"]
            owner = pwd.getpwuid(status.st_uid).pw_name if self.check_owner else who
            if not stat.S_ISDIR(status.st_mode) or submissions.problem_with_name(who):
                raise ValueError("it is no student's folder")
            if owner != who:
                raise ValueError(f"it belongs to {owner}. Did {owner} hand in for another?")
            return record
        except (ValueError, OverflowError, KeyError, OSError) as error:
            self.log.warning("Not collected: %s (%s)", on_terminal(path, lines=False), error)
            return {"username": "", "filename": "", "timestamp": datetime.datetime.min}

    def do_copy(self, src: str, dest: str, log: object = None) -> None:
        try:
            left_out = submissions.copy(Path(src), Path(dest))
        except OSError as error:
            if machine.at_fault(error):
                self.fail(f"Not all was collected: {machine.told(error, Path(dest))}")
            left_out = (f"it cannot be copied ({error.strerror}).",)
        for note in left_out:
            self.log.warning("%s: %s", on_terminal(src, lines=False), on_terminal(note, lines=False))

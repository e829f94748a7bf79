"""A class on a hub that hub/up has brought up: students log in, fetch, solve, validate and submit at once.

    python -m evidence.hub http://127.0.0.1:8000 PASSWORDS TEACHER HUB EXCHANGE        as root

PASSWORDS: a file of lines "name password", as hub/up prints them. HUB, EXCHANGE: its folders. The teacher has a
clone of the course, closed to others, in ~/warplab-course.

The teacher's account releases, collects, grades and returns. Last, each student tries to read the others' homes, what
they handed in, solutions and grades.
"""

from __future__ import annotations

import http.cookiejar
import json
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

from warpcourse.paths import COURSE

LAB = "01_vector_multiply"


class Student:
    """One who uses the hub as a browser does."""

    def __init__(self, hub: str, name: str, password: str) -> None:
        self.hub, self.name, self.password = hub, name, password
        self.cookies = http.cookiejar.CookieJar()
        self.browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))

    def xsrf(self, path: str) -> str:
        """Return the cookie against forged requests that is sent with this path, the most special one."""
        found = [c for c in self.cookies if c.name == "_xsrf" and path.startswith(c.path)]
        return max(found, key=lambda cookie: len(cookie.path)).value or "" if found else ""

    def ask(self, path: str, form: dict | None = None, method: str | None = None, body: dict | None = None) -> str:
        """Return what a page of the hub or of the student's server answers. Raises HTTPError."""
        data = urllib.parse.urlencode(form).encode() if form is not None else body and json.dumps(body).encode()
        request = urllib.request.Request(self.hub + path, data=data, method=method)
        request.add_header("X-XSRFToken", self.xsrf(path))
        return self.browser.open(request, timeout=300).read().decode()

    def server(self, path: str, **options) -> str:
        return self.ask(f"/user/{self.name}{path}", **options)

    def work(self, answers: dict[str, str]) -> dict[str, float]:
        """Log in, fetch, solve, validate and submit. Return the seconds of each."""
        took, started = {}, time.monotonic()

        def done(step: str) -> None:
            nonlocal started
            took[step], started = round(time.monotonic() - started, 1), time.monotonic()

        self.ask("/hub/login")
        form = {"username": self.name, "password": self.password, "_xsrf": self.xsrf("/hub/")}
        self.ask("/hub/login?next=%2Fhub%2Fhome", form=form)
        self.ask("/hub/spawn")
        until = time.monotonic() + 300
        while "JupyterLab" not in self.ask(f"/hub/user-redirect/lab?for={self.name}")[:4000]:
            if time.monotonic() > until:
                raise TimeoutError(f"{self.name}'s server does not start")
            time.sleep(1)
        done("log in")
        what = {"course_id": "warplab", "assignment_id": LAB}
        assert json.loads(self.server("/assignments/fetch", form=what))["success"]
        done("fetch")
        path = f"/api/contents/{LAB}/{LAB}.ipynb"
        notebook = nbformat.from_dict(json.loads(self.server(path))["content"])
        self.server(path, method="PUT", body={"type": "notebook", "content": solved(notebook, answers)})
        done("solve")
        validated = json.loads(self.server("/assignments/validate", form={"path": f"{LAB}/{LAB}.ipynb"}))
        assert validated["success"], validated
        done("validate")
        assert json.loads(self.server("/assignments/submit", form=what))["success"]
        done("submit")
        return took


def solved(notebook: NotebookNode, answers: dict[str, str]) -> NotebookNode:
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = answers.get(name, cell.source)
    return notebook


def as_user(name: str, command: str) -> subprocess.CompletedProcess:
    return subprocess.run(["su", "-", name, "-c", command], capture_output=True, text=True)


def main(arguments: list[str]) -> int:
    hub, passwords, teacher, place, exchange = arguments
    lines = [line.split() for line in Path(passwords).read_text().splitlines()]
    students = [Student(hub, name, password) for name, password in lines if name != teacher]
    source = nbformat.read(COURSE / "solutions" / LAB / f"{LAB}.ipynb", as_version=4)
    answers = {
        cell.metadata.nbgrader.grade_id: cell.source
        for cell in source.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }
    inside = f'export PATH="{place}/course/.venv/bin:$PATH"; cd ~/warplab-course && '
    for command in (f"nbgrader generate_assignment {LAB} --force", f"nbgrader release_assignment {LAB}"):
        print(command, as_user(teacher, inside + command).returncode, flush=True)
    with ThreadPoolExecutor(len(students)) as pool:
        for student, took in zip(students, pool.map(lambda one: one.work(answers), students), strict=True):
            print(student.name, took, flush=True)
    for command in (f"nbgrader collect {LAB}", f"python -m warplab grade {LAB}", f"nbgrader release_feedback {LAB}"):
        ran = as_user(teacher, inside + command)
        print(command, ran.returncode, ran.stdout[-700:], ran.stderr[-400:], flush=True)
    reached = []
    for one in students:
        wanted = [f"~{other.name}/{LAB}" for other in students if other is not one] + [f"~{teacher}/warplab-course"]
        wanted += [f"{exchange}/warplab/inbound", f"{place}/state", f"{place}/course/solutions"]
        reached += [(one.name, path) for path in wanted if as_user(one.name, f"ls {path}").returncode == 0]
        for other in students:
            if other is not one:
                try:
                    one.ask(f"/user/{other.name}/api/contents/")
                    reached.append((one.name, f"server of {other.name}"))
                except urllib.error.HTTPError as refused:
                    if refused.code not in (403, 404):
                        raise
    print(json.dumps({"students": len(students), "reached what is not theirs": reached}))
    return bool(reached)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

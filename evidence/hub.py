"""A class on a hub, from an empty folder: students log in, fetch, solve, validate and submit at once.

    python -m evidence.hub [--students 30] [--python /usr/bin/python3] [--write]          as root, on a machine with npm

hub/up makes users wl01, wl02 ... and wlteacher, who must not exist, and lays the hub into a folder of its own. The
teacher releases, collects, grades and returns; each student fetches the feedback and tries to reach what is not theirs.
Then the hub starts once more with a short limit on idle servers, and ends one. All is removed; --write: into hub.json.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import http.cookiejar
import json
import os
import pwd
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import psutil
from nbformat.notebooknode import NotebookNode

from warpcourse.paths import COURSE

LAB, POINTS = "01_vector_multiply", 25
TEACHER = "wlteacher"
PATIENCE = 1800.0  # seconds for any step, on two cores that do other things
IDLE = 20  # seconds; the limit on idle servers that is tried
RECORD = Path(__file__).parent / "hub.json"


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
        return self.browser.open(request, timeout=PATIENCE).read().decode()

    def server(self, path: str, **options) -> str:
        return self.ask(f"/user/{self.name}{path}", **options)

    def nbgrader(self, action: str, **form: str) -> dict:
        """Return what a button of nbgrader's does: fetch, validate, submit, fetch_feedback."""
        about = form or {"course_id": "warplab", "assignment_id": LAB}
        done = json.loads(self.server(f"/assignments/{action}", form=about))
        assert done["success"], f"{self.name}: {action}: {done}"
        return done

    def log_in(self) -> None:
        """Log in and have the server started."""
        self.ask("/hub/login")
        form = {"username": self.name, "password": self.password, "_xsrf": self.xsrf("/hub/")}
        self.ask("/hub/login?next=%2Fhub%2Fhome", form=form)
        self.ask("/hub/spawn")
        until(
            lambda: "JupyterLab" in self.ask(f"/hub/user-redirect/lab?for={self.name}")[:4000], f"{self.name}'s server"
        )

    def work(self, answers: dict[str, str]) -> dict[str, float]:
        """Log in, fetch, solve, validate and submit. Return the seconds of each."""
        steps = {"log in": self.log_in, "fetch": self.fetch, "solve": lambda: self.solve(answers)}
        took = {}
        for name, step in {**steps, "validate": self.validate, "submit": self.submit}.items():
            started = time.monotonic()
            step()
            took[name] = round(time.monotonic() - started, 1)
        return took

    def fetch(self) -> None:
        self.nbgrader("fetch")

    def solve(self, answers: dict[str, str]) -> None:
        path = f"/api/contents/{LAB}/{LAB}.ipynb"
        notebook = nbformat.from_dict(json.loads(self.server(path))["content"])
        self.server(path, method="PUT", body={"type": "notebook", "content": solved(notebook, answers)})

    def validate(self) -> None:
        failed = self.nbgrader("validate", path=f"{LAB}/{LAB}.ipynb")["value"]
        assert failed == {}, f"{self.name}: {failed}"

    def submit(self) -> None:
        self.nbgrader("submit")

    def feedback(self) -> bool:
        """Fetch the feedback; return whether a page of it lies in the student's folder."""
        self.nbgrader("fetch_feedback")
        home = Path(pwd.getpwnam(self.name).pw_dir)
        pages = (home / LAB / "feedback").rglob("*.html")
        return any(re.search(rf"Score: {POINTS}(\.0)? / {POINTS}", page.read_text()) for page in pages)

    def reached(self, others: list[Student]) -> list[str]:
        """Return whose server answers this student."""
        found = []
        for other in others:
            try:
                self.ask(f"/user/{other.name}/api/contents/")
                found.append(f"{self.name}: server of {other.name}")
            except urllib.error.HTTPError as refused:
                if refused.code not in (403, 404):
                    raise
        return found


class Memory(threading.Thread):
    """Watches memory, in MB: `most` of all students together, `one` of one of them, `grading` of the teacher."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(daemon=True)
        self._names, self._over = {*names}, threading.Event()
        self.most = self.one = self.grading = self.processes = 0

    def run(self) -> None:
        while not self._over.wait(5):
            by_user: dict[str, int] = {}
            count = 0
            for process in psutil.process_iter():
                with contextlib.suppress(psutil.Error):
                    if (name := process.username()) in self._names:
                        by_user[name] = by_user.get(name, 0) + process.memory_full_info().pss
                        count += 1
            self.grading = max(self.grading, by_user.pop(TEACHER, 0) >> 20)
            self.most = max(self.most, sum(by_user.values()) >> 20)
            self.one = max(self.one, max(by_user.values(), default=0) >> 20)
            self.processes = max(self.processes, count)

    def stop(self) -> None:
        self._over.set()
        self.join()


def solved(notebook: NotebookNode, answers: dict[str, str]) -> NotebookNode:
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = answers.get(name, cell.source)
    return notebook


def until(holds: Callable[[], bool], what: str) -> None:
    """Ask each second. Raises TimeoutError."""
    last = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > last:
            raise TimeoutError(f"{what}: nothing after {PATIENCE:g} s")
        time.sleep(1)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def as_user(name: str, command: str) -> subprocess.CompletedProcess:
    return subprocess.run(["su", "-", name, "-c", command], capture_output=True, text=True)


@contextlib.contextmanager
def hub(folder: Path, names: list[str], python: str, **more: str) -> Iterator[str]:
    """Run hub/up; yield the hub's address once it answers, then end it. Raises RuntimeError."""
    address = f"http://127.0.0.1:{free_port()}"
    settings = {"WARPLAB_HUB": folder / "hub", "WARPLAB_EXCHANGE": folder / "exchange", "PYTHON": python, **more}
    ports = {"URL": address, "PORT": free_port(), "PROXY": f"http://127.0.0.1:{free_port()}"}
    settings |= {f"WARPLAB_HUB_{name}": value for name, value in ports.items()}
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {name: str(value) for name, value in settings.items()}
    with open(folder / "log", "a", opener=lambda path, flags: os.open(path, flags, 0o600)) as log:
        up = subprocess.Popen([COURSE / "hub" / "up", *names], env=environment, stdout=log, stderr=log)
    try:

        def answers() -> bool:
            if up.poll() is not None:
                raise RuntimeError(f"hub/up ended with {up.returncode}; {folder}/log says why")
            with contextlib.suppress(OSError):
                return bool(urllib.request.urlopen(f"{address}/hub/api", timeout=PATIENCE).read())
            return False

        until(answers, "the hub")
        yield address
    finally:
        up.terminate()
        up.wait(120)


def the_class(folder: Path, address: str, passwords: dict[str, str], figures: dict) -> list[str]:
    """Let the class work. Return what went wrong."""
    students = [Student(address, name, password) for name, password in passwords.items() if name != TEACHER]
    source = nbformat.read(COURSE / "solutions" / LAB / f"{LAB}.ipynb", as_version=4)
    answers = {
        cell.metadata.nbgrader.grade_id: cell.source
        for cell in source.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
    }

    def teach(command: str) -> str:
        started = time.monotonic()
        ran = as_user(TEACHER, f'export PATH="{folder}/hub/course/.venv/bin:$PATH"; cd ~/warplab-course && {command}')
        figures["grade" if " grade " in command else command.split()[1]] = round(time.monotonic() - started)
        print(command, ran.returncode, ran.stdout[-900:], ran.stderr[-400:], flush=True)
        assert ran.returncode == 0, command
        return ran.stdout + ran.stderr

    home = pwd.getpwnam(TEACHER).pw_dir
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", COURSE, f"{home}/warplab-course"], check=True)
    subprocess.run(["chown", "-R", f"{TEACHER}:", f"{home}/warplab-course"], check=True)
    teach(f"nbgrader generate_assignment --force {LAB}")
    teach(f"nbgrader release_assignment {LAB}")
    memory, started = Memory([*passwords]), time.monotonic()
    memory.start()
    with ThreadPoolExecutor(len(students)) as pool:
        took = list(pool.map(lambda one: one.work(answers), students))
    figures["class"] = round(time.monotonic() - started)
    for step in took[0]:
        times = [each[step] for each in took]
        figures[step] = {"median": statistics.median(times), "most": max(times)}
    with ThreadPoolExecutor(8) as pool:
        asked = pool.map(lambda one: one.reached([other for other in students if other is not one]), students)
        reached = [each for found in asked for each in found]
    teach(f"nbgrader collect {LAB}")
    told = teach(f"python -m warplab grade {LAB}")
    teach(f"nbgrader release_feedback {LAB}")
    wrong = [] if f"points: mean {POINTS}.0, median {POINTS}" in told else ["not everybody has all points"]
    figures["sandbox"] = "none" if "WARNING" in told else "bubblewrap"
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(Student.feedback, students))
    wrong += [f"{one.name} has no feedback" for one, page in zip(students, got, strict=True) if not page]
    memory.stop()
    figures["MB"] = {"class": memory.most, "student": memory.one, "grading": memory.grading}
    figures["processes"] = memory.processes
    for one in students:
        reached += files_reached(one.name, [other.name for other in students if other is not one], folder)
    figures["reached what is not theirs"] = len(reached)
    return wrong + reached


def files_reached(name: str, others: list[str], folder: Path) -> list[str]:
    """Return what a student can list or read and should not, and what makes them more than an ordinary user."""
    closed = [f"~{other}" for other in others] + [f"~{TEACHER}", f"~{TEACHER}/warplab-course"]
    closed += [f"{folder}/exchange/warplab/{part}" for part in ("inbound", "feedback")]
    closed += [f"{folder}/hub/state", f"{folder}/hub/course/solutions", f"{folder}/hub/course/tests"]
    look = f"for path in {' '.join(closed)}; do ls $path > /dev/null 2>&1 && echo {name}: $path; done\n"
    if name < min(others):  # what one can read there, all can
        look += f"grep -rls --include=*.ipynb --exclude-dir=.venv 'BEGIN SOLUTION' {folder}\n"
    look += f"test ! -r {folder}/log || echo {name}: the passwords\n"
    look += f"sudo -n true 2> /dev/null && echo {name}: sudo\n"
    look += f'test "$(id -u)" -ge 1000 -a "$(id -Gn)" = "$(id -un)" || echo {name}: "$(id)"\n'
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.username() in others:
                look += f"(: < /proc/{process.pid}/environ) 2> /dev/null && echo {name}: process of another\n"
    return as_user(name, look).stdout.splitlines()


def idle_server_ends(address: str, one: Student) -> float:
    """Return the seconds after which the server of a student who left is ended."""
    one.hub = address
    one.cookies.clear()
    one.log_in()
    started = time.monotonic()
    until(lambda: not any(p.username() == one.name for p in psutil.process_iter(["username"])), "the end of a server")
    return round(time.monotonic() - started)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m evidence.hub", description=__doc__.splitlines()[0])
    parser.add_argument("--students", type=int, default=30)
    parser.add_argument("--python", default="/usr/bin/python3", help="one that every user can read")
    parser.add_argument("--write", action="store_true", help=f"write {RECORD.name}")
    options = parser.parse_args(arguments)
    names = [*(f"wl{number:02}" for number in range(1, options.students + 1)), TEACHER]
    taken = {account.pw_name for account in pwd.getpwall()} & {*names}
    if os.geteuid() != 0 or not shutil.which("npm") or taken:
        print(f"error: this needs root, npm, and that no user is called {names[0]} ... {TEACHER}", file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix="warplab-hub-"))
    folder.chmod(0o755)
    figures: dict = {"date": f"{datetime.date.today()}", "students": options.students, "cores": os.cpu_count()}
    started = time.monotonic()
    try:
        with hub(folder, names, options.python) as address:
            figures["set up"] = round(time.monotonic() - started)
            lines = [line.split() for line in (folder / "log").read_text().splitlines()]
            passwords = {line[0]: line[1] for line in lines if len(line) == 2 and line[0] in names}
            wrong = the_class(folder, address, passwords, figures)
            figures["load"] = round(os.getloadavg()[2], 1)
            print(*wrong, json.dumps(figures), sep="\n", flush=True)
        with hub(folder, [], options.python, WARPLAB_HUB_CULL=str(IDLE)) as address:
            student = Student(address, names[0], passwords[names[0]])
            figures["idle server ends"] = idle_server_ends(address, student)
        print(json.dumps(figures), flush=True)
        if options.write:
            RECORD.write_text(json.dumps(figures, indent=1) + "\n")
    finally:
        shutil.copy(folder / "log", "/tmp/warplab-hub.log")
        for name in names:
            subprocess.run(["userdel", "--remove", "--force", name], capture_output=True)
        shutil.rmtree(folder)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

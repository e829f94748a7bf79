"""Judges that end, hang, grow or do not start. Stand-ins play them, which is quick."""

from __future__ import annotations

import dataclasses
import sys

import distributed
import nbformat
import pytest

from tests.support.class_harness import TINY, tiny_source
from tests.support.waiting import HANG, until
from warpcourse.grading.course import workers
from warpcourse.grading.course.workers import DaskWorkers, JudgeProcess, LocalWorkers, NoJudge
from warpcourse.grading.judge.execute import TrustedExecute
from warpcourse.grading.judge.jobs import Job, Key, Result
from warpcourse.grading.judge.judge import Judge
from warpcourse.grading.sandbox.limits import SubmissionLimits
from warpcourse.processes.tree import is_running
from warplab.simulator import SimulatorFailure

# A judge without nbgrader, which speaks as processes/messages.py. It does BEFORE, says that it is ready, and answers
# each job with full marks after ACT.
JUDGE = """
import json, os, subprocess, sys, time

def send(message):
    body = json.dumps(message).encode()
    os.write(1, len(body).to_bytes(8, "big") + bytes(8) + body)

BEFORE
send({"ready": True, "sandbox": "none"})
while head := sys.stdin.buffer.read(16):
    job = json.loads(sys.stdin.buffer.read(int.from_bytes(head[:8], "big")))
    ACT
    send({"key": job["key"], "status": "graded", "scores": {"test-one": [1, 1]}, "memory": 1})
"""


@pytest.fixture
def acting(monkeypatch):
    """Make every judge do this before it answers, or before it is ready."""
    monkeypatch.setattr(workers, "START_SECONDS", HANG)
    monkeypatch.setattr(workers, "SPARE_SECONDS", HANG)

    def become(act: str, before: str = "") -> None:
        script = JUDGE.replace("ACT", act).replace("BEFORE", before)
        monkeypatch.setattr(JudgeProcess, "command", (sys.executable, "-c", script))

    return become


def job(student: str = "ada", **limits: float) -> Job:
    key = Key(TINY, student, "5" * 64, "7" * 64)
    return Job(key, nbformat.writes(tiny_source()), {}, {}, "seed", SubmissionLimits(**limits), cell_seconds=1)


def results(*jobs: Job, count: int = 1) -> dict[str, Result]:
    return {result.key.student: result for result in LocalWorkers(count).run(jobs)}


def test_jobs_are_shared_and_every_one_is_answered(acting, tmp_path):
    """The first job of each judge takes until both judges have one."""
    wait = f"while len(os.listdir({str(tmp_path)!r})) < 2: time.sleep(0.01)"
    acting(f"open(f'{tmp_path}/{{os.getpid()}}', 'w'); job['key'][3] = str(os.getpid())\n    {wait}")
    found = results(*(job(f"student{number}") for number in range(20)), count=2)
    assert len(found) == 20
    assert all(result.scores == {"test-one": (1, 1)} for result in found.values())
    assert len({result.key.tests for result in found.values()}) == 2


def test_a_job_whose_judge_ends_once_is_tried_again(acting, tmp_path):
    mark = tmp_path / "mark"
    acting(f"fresh = not os.path.exists({str(mark)!r}); open({str(mark)!r}, 'w'); fresh and os._exit(3)")
    assert results(job())["ada"].status == "graded"


def test_a_job_that_ends_every_judge_is_the_graders_failure_and_costs_nobody_else_a_score(acting):
    acting("job['key'][1] == 'eve' and (print('no more memory', file=sys.stderr), os.kill(os.getpid(), 9))")
    found = results(job("ada"), job("eve"), job("bob"))
    assert (found["ada"].status, found["bob"].status) == ("graded", "graded")
    assert found["eve"].status == "infra_error"
    assert "2 times: it ended (signal 9): no more memory" in found["eve"].reason
    assert found["eve"].scores == {}


def test_a_judge_that_hangs_is_killed_with_all_that_it_started(acting, tmp_path, monkeypatch):
    marks = tmp_path / "pids"
    acting(
        "time.sleep(1000)",
        "child = subprocess.Popen(['sleep', '1000'], start_new_session=True);"
        f"open({str(marks)!r}, 'a').write(f'{{child.pid}} {{os.getpid()}} ')",
    )
    monkeypatch.setattr(workers, "SPARE_SECONDS", 0.3)
    late = job(wall_seconds=0.1, judge_seconds=0.5)
    # Ten of wall clock for each of the notebook's time and of a judge's processor time.
    assert late.longest_seconds == pytest.approx(6)
    result = results(late)["ada"]
    assert result.status == "infra_error"
    assert "gave no answer within 6 s" in result.reason
    pids = marks.read_text().split()
    assert len(pids) == 4
    until(lambda: not any(is_running(int(pid)) for pid in pids))  # Linux ends a killed process in its own time


def test_a_submission_that_takes_all_memory_gets_no_points_and_a_reason(acting, monkeypatch):
    monkeypatch.setattr(workers, "MAX_MEMORY", 2**28)
    acting("hoard = bytearray(2**29); time.sleep(1000)")
    result = results(job())["ada"]
    assert result.status == "limit"
    assert "more than 0 GiB of memory" in result.reason
    assert result.scores == {"test-one": (0.0, 1.0), "test-two": (0.0, 2.0)}


def test_where_no_judge_starts_the_grading_ends(monkeypatch, tmp_path):
    marks = tmp_path / "starts"
    command = f"open({str(marks)!r}, 'a').write('x'); import nothing_of_this_name"
    monkeypatch.setattr(JudgeProcess, "command", (sys.executable, "-c", command))
    with pytest.raises(NoJudge, match="No module named 'nothing_of_this_name'"):
        results(*(job(f"student{number}") for number in range(5)))
    assert marks.read_text() == "xx"


def test_what_fails_in_the_grader_itself_is_no_score(monkeypatch):
    def fail(*arguments, **options):
        raise SimulatorFailure("scale", KeyError("warp 7"))

    monkeypatch.setattr(TrustedExecute, "preprocess", fail)
    handed_in = dataclasses.replace(job(), files={f"{TINY}.ipynb": nbformat.writes(tiny_source()).encode()})
    with Judge() as judge:
        result = judge.grade(handed_in)
    assert (result.status, result.scores, result.notebook) == ("infra_error", {}, None)
    assert "the course's simulator failed on scale: KeyError: 'warp 7'" in result.reason


def test_stopping_early_ends_the_judges(acting, tmp_path):
    """One of them works for the 1000 seconds that none of them may live to see."""
    marks = tmp_path / "pids"
    acting("time.sleep(job['key'][1] != 'ada' and 1000)", f"open({str(marks)!r}, 'a').write(f'{{os.getpid()}} ')")
    found = LocalWorkers(2).run([job("ada"), job("bob"), job("eve")])
    assert next(found).key.student == "ada"
    found.close()
    until(lambda: not any(is_running(int(pid)) for pid in marks.read_text().split()))


class Cluster:
    """In the place of `distributed`: a client whose futures have these statuses, one each time they are asked."""

    def __init__(self, monkeypatch, **statuses: list[str]) -> None:
        self.statuses, self.waiting, self.loop = statuses, [], None
        self.handlers, self.names = {}, ["worker"]
        monkeypatch.setattr(distributed, "Client", lambda *arguments, **options: self)
        monkeypatch.setattr(distributed, "as_completed", lambda loop: self)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_) -> None:
        pass

    def wait_for_workers(self, count: int, timeout: float) -> None:
        pass

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.names, 1)

    def subscribe_topic(self, topic: str, handler) -> None:
        self.handlers[topic] = handler

    def event(self, action: str, worker: str, *processing: str) -> None:
        """Tell what the scheduler tells of its workers."""
        message = {"action": action, "worker": worker, "processing-tasks": set(processing), "expected": False}
        self.handlers["all"]((0.0, message))

    def submit(self, function, message: dict, *arguments, **options) -> Future:
        return Future(message["key"], self.statuses[message["key"][1]])

    def add(self, future: Future) -> None:
        self.waiting.append(future)

    def __iter__(self):
        while self.waiting:
            yield self.waiting.pop(0)


class Future:
    def __init__(self, key: list[str], statuses: list[str]) -> None:
        self.key, self._full, self._statuses = key[1], key, list(statuses)

    @property
    def status(self) -> str:
        return self._statuses[0] if len(self._statuses) == 1 else self._statuses.pop(0)

    def result(self) -> dict:
        if self._statuses[0] == "unreachable":
            raise OSError("the connection is closed")
        return Result(Key(*self._full), "graded").as_message()

    def release(self) -> None:
        pass


def test_a_result_that_is_lost_with_its_worker_is_waited_for_again(monkeypatch):
    Cluster(monkeypatch, ada=["lost", "pending", "finished"], bob=["finished"])
    found = DaskWorkers("tcp://somewhere:1").run([job("ada"), job("bob")])
    assert [result.key.student for result in found] == ["bob", "ada"]


def test_workers_that_come_and_go_are_told(monkeypatch):
    cluster = Cluster(monkeypatch, ada=["finished"], bob=["finished"])
    cluster.names, said = ["tcp://one:1", "tcp://two:2"], []
    found = DaskWorkers("tcp://somewhere:1", say=said.append).run([job("ada"), job("bob")])
    next(found)
    cluster.event("remove-worker", "tcp://one:1", "bob", "a task of somebody else")
    cluster.event("worker-status-change", "tcp://two:2")
    cluster.handlers["all"]((0.0, "a client's own event"))
    cluster.event("remove-worker", "tcp://two:2")
    cluster.event("add-worker", "tcp://three:3")
    cluster.event("add-worker", "tcp://four:4")
    assert [result.key.student for result in found] == ["bob"]
    assert said == [
        "Worker tcp://one:1 was lost; what it was grading goes to another one: bob",
        "Worker tcp://two:2 was lost, and none is left: start a dask worker for tcp://somewhere:1, which goes on then",
        "Worker tcp://three:3 has joined",
    ]


@pytest.mark.parametrize("statuses", [["cancelled"], ["finished", "unreachable"]])
def test_a_lost_scheduler_ends_the_grading(monkeypatch, statuses):
    Cluster(monkeypatch, ada=["finished"], bob=statuses)
    found = DaskWorkers("tcp://somewhere:1").run([job("ada"), job("bob")])
    assert next(found).key.student == "ada"
    with pytest.raises(
        NoJudge, match="scheduler at tcp://somewhere:1 was lost; restart it and run the same command again"
    ):
        next(found)


def test_a_count_of_workers_below_one_is_refused():
    with pytest.raises(ValueError, match="got 0"):
        LocalWorkers(0)

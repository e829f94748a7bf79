"""A child process answers, dies, hangs or talks nonsense; whoever asked learns which."""

import contextlib
import os
import sys

import numpy as np
import pytest

from tests.support import waiting
from warpcourse.processes import tree
from warpcourse.processes.child import Child, ChildEnded, ChildSilent
from warpcourse.processes.messages import BadMessage

ECHO = """
from warpcourse.processes.messages import read, reply, take_over
questions, answers = take_over()
print("not a message")
while (message := read(questions, arrays=True)) is not None:
    told, arrays = message
    exec(told.get("run", ""))
    reply(answers, {"told": told}, arrays)
"""


@contextlib.contextmanager
def child(code=ECHO, **options):
    made = Child([sys.executable, "-c", code], **options)
    try:
        yield made
    finally:
        made.kill()
    assert not tree.is_running(made.pid)


def test_it_answers_and_what_it_prints_is_no_answer():
    with child() as one:
        assert one.exchange({"a": 1}, 60) == {"told": {"a": 1}}
        one.send({"a": 2})
        one.send({"a": 3})
        assert [one.receive(60)[0]["told"]["a"] for _ in range(2)] == [2, 3]
        assert one.last_words() == "not a message"


def test_long_messages_pass_in_both_directions_at_once():
    """Each is longer than a pipe holds, and the child answers the first while the second is on its way."""
    image = np.random.default_rng(20261123).integers(0, 256, (3, 1 << 20), dtype=np.uint8)
    with child(arrays=True) as one:
        one.send({"n": 0}, {"image": image})
        one.send({"n": 1}, {"image": image[::-1]})
        for n, wanted in enumerate((image, image[::-1])):
            told, arrays = one.receive(120)
            assert told == {"told": {"n": n}}
            np.testing.assert_array_equal(arrays["image"], wanted)


@pytest.mark.parametrize(
    ("run", "how"),
    [
        ("raise SystemExit('no memory')", r"^it ended \(exit code 1\): no memory$"),
        ("import os; os.kill(os.getpid(), 9)", r"^it ended \(signal 9\)"),
    ],
)
def test_it_ends(run, how):
    with child() as one, pytest.raises(ChildEnded, match=how):
        one.exchange({"run": run}, 60)


def test_a_message_to_one_that_has_ended_says_how_it_ended():
    with child("raise SystemExit(3)") as one:
        one.process.wait(60)
        with pytest.raises(ChildEnded, match="exit code 3"):
            one.exchange({}, 60)


def test_it_is_silent():
    with child() as one, pytest.raises(ChildSilent, match="within 0 s"):
        one.exchange({"run": "import time; time.sleep(600)"}, 0.1)


def test_it_talks_nonsense():
    with child("print('x' * 100, flush=True); input()") as one, pytest.raises(BadMessage):
        one.receive(60)


def test_what_watches_may_end_the_waiting():
    def watch(pid):
        raise MemoryError(pid)

    with child() as one, pytest.raises(MemoryError):
        one.exchange({"run": "import time; time.sleep(600)"}, 60, watch)


def test_nothing_below_it_is_left():
    with child() as one:
        run = "import subprocess; told['pid'] = subprocess.Popen(['sleep', '6000']).pid"
        below = one.exchange({"run": run}, 60)["told"]["pid"]
        assert tree.is_running(below)
    waiting.until(lambda: not tree.is_running(below), "the end of a process below")  # killed, it may die a little later


def test_its_input_ends_with_stop_and_the_course_is_on_its_path():
    with child("import sys, warpcourse; sys.stdin.read(); sys.exit(4)", environment={"WARPLAB_X": "1"}) as one:
        one.stop(60)
        assert one.process.returncode == 4
    assert "WARPLAB_X" not in os.environ

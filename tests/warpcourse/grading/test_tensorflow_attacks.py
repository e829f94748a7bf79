"""The hostile submissions of attacks/tensorflow, graded in the sandbox, and those whose points must not
depend on it under limits alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from tests.support.attack_harness import (
    POINTS,
    RIGHT,
    Attack,
    Listener,
    Target,
    grade,
    left_behind,
    seen,
    tensorflow_attacks,
    told,
)
from tests.support.waiting import until
from warpcourse.grading.course.workers import LocalWorkers
from warpcourse.grading.sandbox import isolation

ATTACKS = tensorflow_attacks()
EVERYWHERE = ("forged_numpy", "imports_in_the_judge", "patched_tensorflow", "py_function", "reads_files", "writes")
# An honest answer of tensors; the second test doubles text.
TENSORS = "def double(x):\n    return x + x if isinstance(x, str) else tf.Variable(2 * tf.convert_to_tensor(x))"


def test_the_attacks_are_all_there():
    assert len(ATTACKS) >= 14
    assert {f"tensorflow/{name}" for name in EVERYWHERE} < {attack.name for attack in ATTACKS}


@pytest.mark.sandbox
def test_no_attack_gains_a_point_or_costs_another_one(tmp_path):
    assert_as_expected(tmp_path, ATTACKS, "bubblewrap")


def test_under_limits_alone(tmp_path, monkeypatch):
    """What `limits` of an attack says is lost without bubblewrap; the points are not."""
    monkeypatch.setenv(isolation.SWITCH, "limits")
    assert_as_expected(tmp_path, [a for a in ATTACKS if a.name.partition("/")[2] in EVERYWHERE], "limits", judges=1)


def assert_as_expected(tmp_path, chosen: Sequence[Attack], sandbox: str, judges: int = 2) -> None:
    """Grade the attacks in one class with honest submissions."""
    with Listener().open() as listener:
        target = Target(tmp_path, without_kernel=True, port=listener.port, tensorflow=True)
        target.hand_in_all(chosen)
        target.hand_in("honest-tensors", RIGHT | {"double": TENSORS})
        records = grade(target, chosen, LocalWorkers(judges))
        assert listener.heard == []
    until(lambda: not left_behind(), "the end of every process of an attack")
    assert {record["sandbox"] for record in records.values()} == {sandbox}
    assert (target.honest() | {"honest-tensors": POINTS[:3]}).items() <= target.scores().items()
    wrong = {}
    for attack in chosen:
        expected = attack.limits if sandbox == "limits" else attack.expects
        got, reason = seen(target, attack, records[attack.student]), told(records[attack.student])
        outputs = target.outputs(attack.student)
        ran = not attack.prints or re.search(r"^(TRIED|GOT)", outputs, re.MULTILINE)
        ran = ran and not re.search(r"^(ImportError|ModuleNotFoundError)$", outputs, re.MULTILINE)  # it went stale
        if got != expected or not re.search(attack.word, reason) or not ran:
            wrong[attack.name] = (got, reason, "" if ran else outputs)
        shown = target.shown(attack.student)
        assert not [what for what, secret in target.secrets.items() if secret.encode() in shown], attack.name
    assert wrong == {}
    if sandbox != "limits":
        assert not list(target.root.rglob("warplab-attack"))  # what the attack `writes` writes

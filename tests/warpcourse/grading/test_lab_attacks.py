"""The hostile answers to exercises of the labs, and the right and unusual ones beside them, as a class is graded."""

import re
from collections import Counter

import pytest

from tests.support.lab_attacks import graded, lab_attacks
from warpcourse.grading.sandbox.isolation import find
from warpcourse.grading.sandbox.kernel_manager import Zygotes

ATTACKS = lab_attacks()


@pytest.fixture(scope="module")
def warmed():
    """Zygotes by what they have imported, started when first asked for."""
    found = {}

    def get(warmth):
        if warmth not in found:
            found[warmth] = Zygotes(find(), warmth=warmth).__enter__()
        return found[warmth]

    yield get
    for one in found.values():
        one.close()


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.id)
def test_an_answer_gets_what_it_deserves(attack, warmed):
    done = graded(attack, warmed(attack.warmth))
    assert attack.tests - done.failed.keys() == attack.holds, done.failed
    messages = "\n".join(done.failed.values())
    assert bool(messages) == bool(attack.reason)
    assert re.search(attack.reason, messages, re.MULTILINE), messages


def test_each_name_is_given_once_and_each_attack_loses_something():
    assert [name for name, count in Counter(one.id for one in ATTACKS).items() if count > 1] == []
    for one in ATTACKS:
        assert one.honest or one.open or one.holds < one.tests, one.id
        assert not one.reason or not re.search(one.reason, "Q: z"), one.id

"""docs/attacks.md is up to date, and what it shows is what is expected of each attack."""

import json

from evidence import attacks_page
from tests.support.lab_attacks import lab_attacks


def test_the_page_is_up_to_date():
    written = attacks_page.PAGE.read_text(encoding="utf-8")
    assert written == attacks_page.page(), "run: python -m evidence.attacks_page"


def test_what_was_seen_is_what_is_expected():
    found = json.loads(attacks_page.SEEN.read_text())
    every = {attack.name: attack for attack in attacks_page.every_attack()}
    assert every.keys() == found["sandbox"].keys(), "run: python -m evidence.attacks_page --try"
    for name, attack in every.items():
        assert found["sandbox"][name] == attacks_page._plain(attack.expects), name
        if name in found["limits"]:
            assert found["limits"][name] == attacks_page._plain(attack.limits), name
        if attack.stock is not None:
            assert found["stock"][name] == attacks_page._plain(attack.stock), name


def test_what_answers_to_exercises_got_is_what_is_expected():
    found = json.loads(attacks_page.SEEN.read_text())["labs"]["points"]
    assert found == {one.id: one.points(one.holds) for one in lab_attacks()}, "run: ... --try labs"

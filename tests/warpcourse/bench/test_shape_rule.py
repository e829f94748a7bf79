"""Constants fitted to made-up times, and shapes that are drawn."""

from pathlib import Path

import numpy as np
import pytest

from warpcourse.bench import measured_plans, shape_rule
from warpcourse.bench.shape_rule import Row, Rule, fit, mean_regret, regret

SHAPES = [(m, 1, k) for m in (1, 4, 16, 64) for k in (8, 128, 2048)]


def terms(plan, shape):
    """Work of a plan that divides k among `plan` workers, each of which costs something."""
    m, _, k = shape
    return m * k / plan, float(plan)


def estimate(constants, of):
    work, plan = of
    return constants["work"] * work + constants["worker"] * plan


def made_up(constants):
    plans = [1, 2, 4, 8, 16]
    return [
        Row(shape, plans, [float(estimate(constants, terms(plan, shape))) for plan in plans], 1.0) for shape in SHAPES
    ]


def test_a_fit_chooses_as_what_made_the_times():
    rows = made_up({"work": 1e-6, "worker": 5e-6})
    start = {"work": 3e-6, "worker": 2e-6}
    found = fit(rows, terms, estimate, start)
    assert found == fit(rows, terms, estimate, start), "the search is seeded"
    regrets = [regret(row, min(row.plans, key=lambda p, r=row: estimate(found, terms(p, r.shape)))) for row in rows]
    assert mean_regret(regrets) < 1.001
    assert found["worker"] / found["work"] == pytest.approx(5, rel=0.2)


def test_a_rule_is_fitted_to_its_own_plans_and_its_choice_held_to_all(monkeypatch):
    monkeypatch.setattr(shape_rule, "STEPS", 500)
    rule = Rule(
        *(Path(), lambda sizes, parts, flag: parts, lambda *sizes: sizes, lambda shape, *rest: [1, 2, 4, 8]),
        *(lambda plan, shape, *rest: terms(plan, shape), estimate, {"work": 3e-6, "worker": 2e-6}),
    )

    def fitted(*more):
        rows = made_up({"work": 1e-6, "worker": 5e-6})
        own = [[[0, *plan, 0, 1e6 * time] for *plan, time in zip(row.plans, row.seconds, strict=True)] for row in rows]
        return rule.fitted(
            {"shape": row.shape, "library": 1.0, "plans": plans[:4] + list(more)}
            for row, plans in zip(rows, own, strict=True)
        )

    without, found = fitted(), fitted([0, 99, 0, 1e-6])
    assert found["constants"] == without["constants"]
    assert without["regret_held_out"]["most"] < 1.1 < 1e6 < found["regret_held_out"]["most"]


def test_constants_stay_near_where_they_start():
    found = fit(made_up({"work": 1e-6, "worker": 1e-9}), terms, estimate, {"work": 1e-6, "worker": 1e-6})
    assert found["worker"] == pytest.approx(1e-7)


def test_the_regret_of_a_choice():
    row = Row((1, 1, 1), ["a", "b"], [2.0, 3.0], None)
    assert regret(row, "a") == 1
    assert regret(row, "b") == 1.5
    assert mean_regret([1.0, 4.0]) == 2
    with pytest.raises(ValueError, match=r"c was not measured for \(1, 1, 1\)"):
        regret(row, "c")


def test_drawn_shapes_are_seeded_and_even_in_their_logarithm():
    sides = np.array(measured_plans.drawn(5, count=2000))
    assert measured_plans.drawn(5, count=2000)[:3] == [tuple(row) for row in sides[:3].tolist()]
    assert sides.min() >= measured_plans.LEAST
    assert sides.max() <= measured_plans.MOST
    assert np.median(sides) == pytest.approx(512, rel=0.1)
    assert not (np.array(measured_plans.drawn(5, 8)) % 8).any()
    assert min(min(shape) for shape in measured_plans.drawn(5, 64)) == 64


def test_a_summary_leaves_out_what_the_library_refused():
    rows = [{"cold": {"ratio": ratio}} for ratio in (0.5, 2.0)] + [{"cold": {"ours": 1.0}}]
    found = measured_plans.summary(rows)
    assert found == {"shapes": 2, "mean": pytest.approx(1), "least": 0.5, "below_0.8": 1}

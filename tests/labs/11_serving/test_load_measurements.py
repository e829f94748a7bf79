"""What is measured of load, on engines that take the time they are told; on a GPU it is run by `make record`."""

import json

import numpy as np
import pytest

from kernels.serving import recordings
from kernels.serving.serve import engines
from kernels.serving.serve.batching.batcher import Limits
from kernels.serving.serve.engines import small_network_engine, torch_networks
from kernels.serving.serve.load import measurements as load_measurements
from kernels.serving.serve.load.generator import LOST, OK, TOO_MANY, UNAVAILABLE, LoadResult
from kernels.serving.small_network import SmallNetwork
from warpcourse.bench.benchmark import correct


def virtual(per_batch, per_sample):
    data = np.arange(32, dtype=np.float32).reshape(8, 4)
    return load_measurements.subject(engines.virtual(per_batch, per_sample), data, (1, 4))


def test_an_answer_is_right_if_it_is_near_the_one_that_the_sample_had_alone():
    served = virtual(0, 0)
    rows = served.predict([served.data[2], served.data[5]])
    assert served.right(2, rows[0])
    assert served.right(5, rows[1])
    assert not served.right(5, rows[0])


def test_curves_in_process():
    limits = (Limits(1, 0.0, 16), Limits(4, 0.001, 16))
    found = load_measurements.in_process(virtual(0.004, 0), all_limits=limits, seconds=0.3, parts=(0.3, 3.0))
    json.dumps(found, allow_nan=False)
    text = load_measurements.TABLES["load_small"].text(found)
    assert text.startswith("virtual engine, load")
    assert text.count("\n") >= 5
    assert set(load_measurements.TABLES["load_small"].summary(found)["best_per_second"]) == {"1", "4"}
    assert found["correct"]
    assert [row["batch"] for row in found["times"]] == [1, 4]
    assert all(row["seconds"] >= 0.004 for row in found["times"])
    one, four = found["curves"]
    assert (one["batch_limit"], four["batch_limit"]) == (1, 4)
    assert one["rows"][0]["mean_batch"] == 1
    assert 1 <= four["rows"][1]["mean_batch"] <= 4
    assert one["saturated_per_second"] <= 250  # 4 ms each


def row(answered, p99, **statuses):
    return {"answered_per_second": answered, "p99_seconds": p99, "statuses": statuses or {"200": 10}}


def test_the_verdict_counts_what_keeps_to_the_limit():
    curves = [
        {"batch_limit": 1, "rows": [row(100, 0.002), row(180, 0.009), row(200, 0.011)]},
        {"batch_limit": 8, "rows": [row(900, 0.010), row(1200, 0.009, **{"200": 10, "429": 1})]},
        {"batch_limit": 32, "rows": [row(2000, 0.02)]},
    ]
    found = load_measurements.verdict(curves, 0.010)
    assert found["best"] == {"1": 180, "8": 900, "32": None}
    assert found["ratio"] == 5
    assert found["correct"]
    curves[2]["rows"][0]["statuses"] = {"200": 10, "500": 1}
    assert not load_measurements.verdict(curves, 0.010)["correct"]
    assert load_measurements.verdict(curves[1:], 0.010)["ratio"] is None


def test_an_overload_is_told_second_by_second_and_nothing_may_be_lost():
    planned = np.array([0.0, 0.5, 0.9, 1.1, 1.2])
    status = np.array([OK, TOO_MANY, OK, OK, UNAVAILABLE])
    run = LoadResult(5.0, planned, np.zeros(5), np.array([0.1, 0, 0.2, 0.3, 0]), status)
    found = load_measurements.overloaded(run, 0.4, accepted=3, answered=3)
    json.dumps(found, allow_nan=False)
    assert [(s["offered"], s["answered"], s["turned_away"]) for s in found["by_second"]] == [(3, 2, 1), (2, 1, 1)]
    assert found["times"] == pytest.approx(5 / 1.2 / 0.4)
    assert found["correct"]
    assert not load_measurements.overloaded(run, 0.4, accepted=4, answered=3)["correct"]
    run.status[1] = LOST
    found = load_measurements.overloaded(run, 0.4, accepted=3, answered=3)
    assert found["lost"] == 1
    assert not found["correct"]


@pytest.mark.thorough
def test_overload_and_a_curve_over_http():
    name, options = "kernels.serving.serve.engines:virtual", {"per_batch": 0.01, "per_sample": 0.0}
    limits = Limits(1, 0.0, 8)
    found = load_measurements.overload_over_http(name, limits, options=options, seconds=0.5, guess=300)
    json.dumps(found, allow_nan=False)
    assert found["correct"]
    assert found["accepted"] == found["answered"] > 0
    found = load_measurements.http_curve(name, limits, options=options, seconds=0.3, parts=(0.3,), guess=300)
    json.dumps(found, allow_nan=False)
    assert found["correct"]
    assert found["curves"][0]["counts"]["accepted"] == found["curves"][0]["counts"]["answered"]


def test_the_images_of_resnet_differ():
    images = torch_networks.images(4)
    assert (images.shape, images.dtype) == ((4, 3, 224, 224), np.uint8)
    assert len({image.tobytes() for image in images}) == 4


def test_an_engine_that_takes_lists_gets_them():
    engine = small_network_engine.NetworkEngine(SmallNetwork(layers=1, channels=8, size=4), (2,))
    served = load_measurements.subject(engine, engine.network.images(6), engine.sizes)
    rows = served.predict([served.data[1], served.data[4]])
    assert served.right(1, rows[0])
    assert served.right(4, rows[1])


def test_what_is_measured_has_a_name_each():
    assert all(callable(function) for function in load_measurements.MEASUREMENTS.values())
    assert set(load_measurements.TABLES) == set(load_measurements.MEASUREMENTS)
    assert {"load_small", "load_large", "overload_over_http"} <= set(load_measurements.MEASUREMENTS)


def test_what_is_recorded_was_right_and_is_told():
    recorded = recordings.values()
    for key in load_measurements.TABLES.keys() & recorded.keys():
        assert correct(recorded[key]), key
        assert load_measurements.TABLES[key].text(recorded[key])
    large, overload = recorded["load_large"], recorded["overload_over_http"]
    assert large["latency_limit_seconds"] <= 0.010
    assert large["ratio"] >= 5  # the goal: dynamic batching over one at a time, within 10 ms
    assert load_measurements.verdict(large["curves"], large["latency_limit_seconds"])["best"] == large["best"]
    assert overload["times"] >= 10
    assert overload["run"]["seconds"] >= 60
    assert overload["accepted"] == overload["answered"] == overload["run"]["statuses"]["200"]

"""The model of sharing in virtual time: against closed forms, Little's law, and recordings made from it."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.serving import recordings
from kernels.serving.overlap.sharing import model as sharing_model
from kernels.serving.overlap.sharing.model import Client, Gpu, in_turns, one_thread, predict, row, together

GPU = Gpu(request=150e-6, host=20e-6, width=10.0, switch=60e-6)
KS = (1, 2, 4, 8, 16, 48)


@pytest.mark.parametrize("k", KS)
@pytest.mark.parametrize("batch", [1, 4])
def test_rates_of_equal_clients_are_the_closed_forms(k, batch):
    alone = GPU.seconds(batch)
    switch = GPU.switch if k > 1 else 0
    turns = min(k / (GPU.host + alone + switch), 1 / (alone + switch))
    side_by_side = min(k * batch / (GPU.host + GPU.request), GPU.width / GPU.request)
    thread = min(side_by_side, batch / GPU.host)
    assert predict(GPU, "time slices", k, batch)["images_per_second"] == pytest.approx(turns * batch, rel=0.02)
    # Clients in step prepare at the same time, so that the GPU waits for the host: less than the closed form.
    assert predict(GPU, "MPS", k, batch)["images_per_second"] == pytest.approx(side_by_side, rel=0.15)
    assert predict(GPU, "streams", k, batch)["images_per_second"] == pytest.approx(thread, rel=0.15)


def test_mps_scales_until_the_width_is_used_and_time_slices_do_not():
    factors = [predict(GPU, "MPS", k)["images_per_second"] / predict(GPU, "MPS", 1)["images_per_second"] for k in KS]
    assert factors[:4] == pytest.approx([1, 2, 4, 8], rel=0.01)
    assert factors[-1] == pytest.approx((GPU.request + GPU.host) / GPU.request * GPU.width, rel=0.05)
    turns = [predict(GPU, "time slices", k)["images_per_second"] for k in KS]
    assert turns == sorted(turns, reverse=True)


@given(
    k=st.integers(1, 12),
    batch=st.integers(1, 40),
    request=st.floats(1e-5, 1e-3),
    host=st.floats(0, 1e-4),
    width=st.floats(1, 50),
    switch=st.floats(0, 1e-4),
    way=st.sampled_from(("time slices", "MPS", "streams")),
)
def test_littles_law_and_limits_hold(k, batch, request, host, width, switch, way):
    gpu = Gpu(request, host, width, switch)
    until = 50 * k * (gpu.seconds(batch) + switch + host)
    found = sharing_model.WAYS[way](gpu, k, batch, until)
    assert len(found) >= k
    for number in range(k):
        own = [one for one in found if one.client == number]
        assert all(after.sent >= before.answered - 1e-9 for before, after in itertools.pairwise(own))
    for one in found:
        assert one.sent <= one.began + 1e-9 <= one.answered + 2e-9
        assert one.latency >= host + gpu.seconds(batch) - 1e-9
    most = 1 / gpu.seconds(batch) if way == "time slices" else width / batch / request  # requests per second
    assert len(found) <= until * most * 1.001 + 1
    # Little: k in flight always, so k = rate x mean latency; the ends of the run blur it.
    mean = sum(one.latency for one in found) / len(found)
    assert len(found) / until * mean == pytest.approx(k, rel=0.1)


def test_a_large_neighbour_delays_small_requests_by_way():
    small, large = Client(), Client(batch=640)  # 64 times the GPU's width: 9.6 ms

    def latency(found):
        return row([one for one in found if one.client == 0], until=0.2)["p50_seconds"]

    alone = latency(together(GPU, [small]))
    turns = latency(in_turns(GPU, [small, large]))
    beside = latency(together(GPU, [small, large]))
    shared = latency(together(GPU, [small, Client(640, share=0.5)]))
    assert alone == pytest.approx(GPU.host + GPU.request)
    assert turns == pytest.approx(GPU.slice + 2 * GPU.switch + GPU.request, rel=0.02)  # waits for a slice of the other
    assert beside == pytest.approx(GPU.host + 1.1 * GPU.request, rel=0.01)  # 11 images' worth where 10 fit
    assert shared == pytest.approx(alone)


def test_a_share_limits_a_client_that_is_alone():
    whole = row(together(GPU, [Client(64)]), 64)["images_per_second"]
    half = row(together(GPU, [Client(64, share=0.5)]), 64)["images_per_second"]
    assert half == pytest.approx(whole / 2, rel=0.02)
    small = row(together(GPU, [Client(share=0.5)]))["images_per_second"]
    assert small == pytest.approx(1 / (GPU.host + GPU.request), rel=0.01)  # it did not use the other half


def test_one_thread_collects_one_answer_after_the_other():
    found = one_thread(Gpu(request=100e-6, host=10e-6, width=100), 3, until=2e-3)
    assert [one.client for one in found[:6]] == [0, 1, 2, 0, 1, 2]
    starts = [one.began for one in found[:3]]
    assert starts == pytest.approx([10e-6, 20e-6, 30e-6])


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"width >= 1; this one is Gpu\(request=0.1, host=0, width=0.5"):
        Gpu(0.1, 0, 0.5)
    with pytest.raises(ValueError, match="there is no way 'MIG' to share a GPU; choose one of time slices, MPS"):
        predict(GPU, "MIG", 2)
    with pytest.raises(ValueError, match="no request was answered; let the model run for longer"):
        row([])


def fit(ways, batches):
    """The parameters from the recordings "sharing_ways" and "sharing_batches".

    `request`: the GPU's time for one image, by events. `host`: what a lone client's time per request adds to it.
    `width`: the largest throughput of one process with batches, times `request`. `switch`: from two clients in turns.
    All other rows of the recordings are predictions.
    """
    request = next(one["seconds"] for one in ways["alone"] if one["batch"] == 1)
    host = max(0.0, 1 / _recorded(ways, "time slices", 1, 1) - request)
    width = max(1.0, request * max(one["batch"] / one["seconds"] for one in batches["alone"]))
    switch = max(0.0, 1 / _recorded(ways, "time slices", 2, 1) - request)
    return Gpu(request, host, width, switch)


def _recorded(value, *key):
    """Images per second of the row of that way, clients, batch."""
    return next(one["images_per_second"] for one in value["rows"] if (one["way"], one["clients"], one["batch"]) == key)


def predictions(gpu, *recordings):
    """For every row of the recordings: way, clients, batch, and images per second as recorded and as predicted."""
    found = []
    for recording in recordings:
        for one in recording["rows"]:
            key = one["way"], one["clients"], one["batch"]
            predicted = predict(gpu, *key)
            found.append(
                {
                    **dict(zip(("way", "clients", "batch"), key, strict=True)),
                    "recorded": one["images_per_second"],
                    "predicted": predicted["images_per_second"],
                    "ratio": predicted["images_per_second"] / one["images_per_second"],
                    "recorded_p99_seconds": one["p99_seconds"],
                    "predicted_p99_seconds": predicted["p99_seconds"],
                }
            )
    return found


def neighbours(gpu, parts):
    """For every row of "sharing_parts" with a small request beside a large one: its median latency, both ways.

    Shares are read from the row, such as "10 % and 90 %". The length of a slice is not fitted: `Gpu.slice`.
    """
    large, found = parts["large_batch"], []
    for one in parts["neighbours"]:
        percents = [int(word) for word in one["shares"].split() if word.isdigit()] or [100, 100]
        clients = [Client(1, percents[0] / 100), Client(large, percents[1] / 100)]
        if one["neighbour"] == "alone":
            clients.pop()
        requests = (in_turns if one["way"] == "time slices" else together)(gpu, clients, sharing_model.UNTIL)
        predicted = row([request for request in requests if request.client == 0])["p50_seconds"]
        about = {key: one[key] for key in ("way", "shares", "neighbour")}
        ratio = predicted / one["p50_seconds"]
        found.append({**about, "recorded": one["p50_seconds"], "predicted": predicted, "ratio": ratio})
    return found


def _made(gpu: Gpu) -> tuple[dict, dict]:
    """Recordings as a GPU that follows the model would give them."""

    def of(way, k, batch):
        return {"way": way, "clients": k, "batch": batch, **predict(gpu, way, k, batch)}

    ways = [of(way, k, 1) for way in ("time slices", "MPS", "streams") for k in (1, 2, 8)]
    alone = [{"batch": batch, "seconds": gpu.seconds(batch)} for batch in (1, 8, 256)]
    return {"alone": alone[:1], "rows": ways}, {"alone": alone, "rows": [of("one batch", 1, 64)]}


def test_fit_finds_the_parameters_that_made_the_recordings():
    ways, batches = _made(GPU)
    found = fit(ways, batches)
    assert (found.request, found.width) == pytest.approx((GPU.request, GPU.width))
    assert found.host == pytest.approx(GPU.host, rel=0.05)
    assert found.switch == pytest.approx(GPU.switch, rel=0.05)
    table = predictions(found, ways, batches)
    assert len(table) == 10
    assert all(one["ratio"] == pytest.approx(1, rel=0.02) for one in table)
    assert not any(math.isnan(one["predicted_p99_seconds"]) for one in table)


def test_the_recorded_table_is_predicted_but_for_many_time_slices():
    values = recordings.values()
    ways, batches = values["sharing_ways"], values["sharing_batches"]
    table = predictions(fit(ways, batches), ways, batches)
    assert len(table) == len(ways["rows"]) + len(batches["rows"])
    for one in table:
        if one["way"] == "time slices" and one["clients"] >= 8:
            continue
        assert 1 / 1.3 < one["ratio"] < 1.3, one
    assert len({row["way"] for row in table}) == 4


def test_recorded_neighbours_are_predicted_where_shares_are_limited():
    values = recordings.values()
    gpu = fit(values["sharing_ways"], values["sharing_batches"])
    found = neighbours(gpu, values["sharing_parts"])
    assert len(found) == 8
    for one in found:
        waits = one["shares"] in ("", "100 % and 100 %") and one["neighbour"] != "alone"
        assert one["ratio"] == pytest.approx(1, rel=0.3 if waits else 0.1), one


def test_a_table_shows_where_the_model_fails():
    ways, batches = _made(GPU)
    ways["rows"][-1]["images_per_second"] *= 2  # 8 streams twice as fast as the model has it
    table = predictions(fit(ways, batches), ways, batches)
    assert [one["ratio"] < 0.6 for one in table] == [False] * 8 + [True, False]

"""The scaling model: steps, overlap and clusters, known networks, and published curves."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.collectives import model, published, scaling_model
from kernels.collectives.model import Link
from kernels.collectives.networks import NETWORKS, LayerCost, parameters, resnet
from kernels.collectives.scaling_model import Cluster, efficiency, step

CLUSTER = Cluster(8, Link(5e-6, 100e9), Link(10e-6, 25e9))
LAYERS = st.lists(st.builds(LayerCost, st.just("a layer"), st.integers(0, 10**8), st.integers(1, 10**9)), min_size=1)


def test_networks_have_the_parameters_that_everybody_knows():
    """torchvision's counts of parameters, and of multiply-adds: 4.09 and 15.47 billion for ResNet-50 and VGG-16."""
    assert {name: parameters(layers) for name, layers in NETWORKS.items()} == {
        "ResNet-50": 25_557_032,
        "ResNet-101": 44_549_160,
        "ResNet-152": 60_192_808,
        "VGG-16": 138_357_544,
        "AlexNet": 61_100_840,
    }
    assert sum(layer.macs for layer in NETWORKS["ResNet-50"]) == pytest.approx(4.09e9, rel=0.01)
    assert sum(layer.macs for layer in NETWORKS["VGG-16"]) == pytest.approx(15.47e9, rel=0.01)
    with pytest.raises(ValueError, match="ResNet-34 is not described here"):
        resnet(34)


# --- Steps ---------------------------------------------------------------------------------------------------------


def communication(found):
    """Seconds of all-reduces."""
    return sum(bucket.end - bucket.begin for bucket in found.buckets)


@given(LAYERS, st.floats(1e-3, 10), st.integers(1, 64), st.floats(0, 1e9), st.booleans(), st.floats(1e-12, 1e-6))
def test_a_step_is_in_order_and_complete(layers, compute, gpus, bucket, overlap, per_byte):
    found = step(layers, compute, gpus, lambda n, k: n * per_byte, bucket, overlap)
    assert found.forward == pytest.approx(compute / 3)
    assert found.backward == pytest.approx(compute)
    assert found.end >= found.backward
    if gpus == 1:
        assert found.buckets == ()
        return
    assert sum(b.n for b in found.buckets) == 4 * parameters(layers)
    assert sum(b.layers for b in found.buckets) == len(layers)
    for bucket_ in found.buckets:
        assert found.forward <= bucket_.ready <= bucket_.begin <= bucket_.end
        assert overlap or bucket_.begin >= found.backward
    assert all(first.end <= second.begin for first, second in pairwise(found.buckets))
    assert found.end <= found.backward + communication(found) * (1 + 1e-9)


@given(LAYERS, st.floats(1e-3, 10), st.integers(2, 64), st.floats(0, 1e9), st.floats(1e-12, 1e-6))
def test_overlap_never_costs_time(layers, compute, gpus, bucket, per_byte):
    def all_reduce(n, k):
        return 1e-5 + n * per_byte

    hidden = step(layers, compute, gpus, all_reduce, bucket)
    shown = step(layers, compute, gpus, all_reduce, bucket, overlap=False)
    assert hidden.end <= shown.end * (1 + 1e-12)
    assert communication(hidden) == pytest.approx(communication(shown))


def test_the_overlap_of_two_layers_by_hand():
    """Backward passes of 4 and 2 s after 3 s forward; gradients of 2 and 3 s, the later layer's first."""
    layers = [LayerCost("first", 3, 1), LayerCost("last", 2, 2)]
    found = step(layers, 9.0, 2, lambda n, k: n / 4, bucket=0)
    assert (found.forward, found.backward) == (3, 9)
    last, first = found.buckets
    assert (last.ready, last.begin, last.end) == pytest.approx((7, 7, 9))
    assert (first.ready, first.begin, first.end) == pytest.approx((9, 9, 12))
    assert found.exposed == pytest.approx(3)
    assert step(layers, 9.0, 2, lambda n, k: n / 4, bucket=math.inf).end == pytest.approx(14)
    assert step(layers, 9.0, 2, lambda n, k: n / 4, overlap=False).end == pytest.approx(14)


def test_small_buckets_pay_alpha_and_large_ones_wait():
    layers = NETWORKS["ResNet-50"]

    def end(bucket):
        return step(layers, 0.1, 256, Cluster(8, Link(1e-5, 50e9), Link(5e-5, 6e9), "flat ring").all_reduce, bucket).end

    best = min(end(2**i) for i in range(20, 28))
    assert end(0) > 2 * best
    assert end(math.inf) > best


def test_slower_ranks_make_the_step_longer():
    assert scaling_model.slowest_of(1) == 0
    assert scaling_model.slowest_of(2) == pytest.approx(1 / math.sqrt(math.pi), abs=0.03)
    assert [round(scaling_model.slowest_of(k), 1) for k in (8, 256, 1000)] == [1.4, 2.8, 3.2]
    layers = NETWORKS["ResNet-50"]
    steady, uneven = (efficiency(layers, 0.1, 256, CLUSTER.all_reduce, jitter=jitter) for jitter in (0, 0.03))
    assert steady - uneven == pytest.approx(0.03 * 2.8, abs=0.02)


def test_steps_of_nothing_are_refused():
    with pytest.raises(ValueError, match="at least one GPU and takes time to compute, not 0 and 1 s"):
        step(NETWORKS["AlexNet"], 1, 0, CLUSTER.all_reduce)


# --- Clusters ------------------------------------------------------------------------------------------------------


def test_inside_a_node_an_all_reduce_is_a_ring():
    assert CLUSTER.all_reduce(1e8, 1) == 0
    assert CLUSTER.all_reduce(1e8, 8) == model.ring_all_reduce(1e8, 8, 8, CLUSTER.inside)


@pytest.mark.parametrize("nodes", [2, 4])
def test_hierarchical_rings_are_rings_in_nodes_and_across(nodes):
    """A reduce-scatter and an all-gather in each node, between them an all-reduce of a part across."""
    cluster = Cluster(4, Link(1e-5, 10e9), Link(2e-5, 20e9), "hierarchical")  # 5e9 for each GPU across
    inside = 2 * model.ring_reduce_scatter(1e8, 4, 4, cluster.inside)
    across = model.ring_all_reduce(1e8 / 4, nodes, nodes, Link(2e-5, 5e9))
    assert cluster.all_reduce(1e8, 4 * nodes) == pytest.approx(inside + across)


def test_the_best_algorithm_changes_with_size_and_number():
    def times(n, gpus):
        return {
            name: Cluster(8, CLUSTER.inside, CLUSTER.network, name).all_reduce(n, gpus)
            for name in ("flat ring", "hierarchical", "halving and doubling")
        }

    large, few, many = times(1e10, 512), times(1e9, 16), times(1e5, 4096)
    assert min(many, key=many.get) == "halving and doubling"
    assert many["flat ring"] > 5 * many["hierarchical"]
    assert many["hierarchical"] > 5 * many["halving and doubling"]
    assert min(few, key=few.get) == "hierarchical"  # N across two nodes, where a flat ring sends 15/8 N
    assert min(large, key=large.get) == "flat ring"
    for n, gpus in ((1e9, 16), (1e5, 4096), (1e7, 64)):
        assert CLUSTER.all_reduce(n, gpus) == min(times(n, gpus).values())


def test_thousands_of_gpus_need_a_hierarchy():
    """The prediction: a flat ring's latency grows with k until it is the whole step."""
    layers = NETWORKS["ResNet-50"]
    flat = Cluster(8, CLUSTER.inside, CLUSTER.network, "flat ring")
    curve = [efficiency(layers, 0.1, gpus, flat.all_reduce) for gpus in (8, 64, 512, 4096, 16384)]
    assert curve == sorted(curve, reverse=True)
    assert curve[2] > 0.8
    assert curve[-1] < 0.2
    assert efficiency(layers, 0.1, 16384, CLUSTER.all_reduce) > 0.9


def test_clusters_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="12 GPUs are no whole number of nodes of 8"):
        CLUSTER.all_reduce(1e6, 12)
    with pytest.raises(ValueError, match="there is no algorithm 'star'; choose one of flat ring"):
        Cluster(8, CLUSTER.inside, CLUSTER.network, "star")
    with pytest.raises(ValueError, match="a node has at least one GPU, not 0"):
        Cluster(0, CLUSTER.inside, CLUSTER.network)


# --- Published curves ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("curve", published.CURVES, ids=lambda curve: curve.title)
def test_every_published_curve_is_below_the_model(curve):
    """The model leaves out whatever slows a cluster down, so it may only be too good."""
    for gpus, error in curve.errors().items():
        assert 0 < curve.published[gpus] < 1
        assert 0 <= error < (0.10 if curve.network != "AlexNet" else 0.25)


def test_where_the_wires_are_the_limit_the_model_explains_most_of_the_loss():
    vgg = next(curve for curve in published.CURVES if curve.network == "VGG-16" and 512 in curve.published)
    for gpus, share in vgg.published.items():
        assert 1 - vgg.model(gpus) > 0.75 * (1 - share)
    assert published.calibrated(vgg, 128)[512] == pytest.approx(0.68, abs=0.05)


def test_no_bandwidth_explains_a_loss_that_is_there_on_two_gpus():
    with pytest.raises(ValueError, match="no bandwidth between nodes explains 96% at 8 GPUs"):
        published.calibrated(published.CURVES[0], 8)


def test_halving_and_doubling_beat_the_ring_on_32_servers():
    """Goyal and others: three times, up to a million elements; a ring wins nowhere."""
    assert 1.5 < published.halving_against_ring(4e6) < 3 < published.halving_against_ring(6.3e5) < 6
    assert published.halving_against_ring(1e9) == pytest.approx(1, abs=0.01)


def test_predictions_beyond_what_was_published():
    """32 GPUs are no difficulty for such wires; thousands are, for rings, and uneven ranks cost more than wires."""
    for algorithm in ("flat ring", "hierarchical", "halving and doubling"):
        assert published.predicted(32, algorithm) > 0.95
        curve = [published.predicted(gpus, algorithm) for gpus in published.PREDICTED]
        assert curve == sorted(curve, reverse=True)
    assert published.predicted(16384, "flat ring") < 0.1
    assert published.predicted(16384, "hierarchical") < 0.5
    assert published.predicted(16384) > 0.95
    assert published.predicted(16384, jitter=published.PREDICTED_JITTER) < 0.9


def test_every_source_has_an_address_and_is_used():
    used = {source for curve in published.CURVES for source in curve.sources}
    assert used | {source for _, source in published.SEVEN_ON_EIGHT} == set(published.URLS)


def test_the_page_is_what_the_model_says():
    assert published.PAGE.read_text(encoding="utf-8") == published.page(), (
        "scaling.md is not up to date; run python -m kernels.collectives.published"
    )

"""Pictures: what is drawn is what the schedule, the model or the reading says, and nothing overlaps its frame."""

import importlib
import io

import pytest
from matplotlib.patches import FancyArrowPatch, Rectangle
from matplotlib.text import Annotation

from kernels.collectives import figures, measurements, recursive, ring, topology, tree
from kernels.collectives.model import Link
from kernels.collectives.networks import NETWORKS
from kernels.collectives.published import CURVES
from kernels.collectives.scaling_model import Cluster, step
from kernels.collectives.schedule import ranks_of

ring_readings = importlib.import_module("tests.labs.10_collectives.ring_readings")

LINK = Link(4.5e-6, 395e9)
CLUSTER = Cluster(8, Link(1e-5, 100e9), Link(2e-5, 6.25e9), "flat ring")


def texts(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def arrows(ax):
    return [text.arrow_patch for text in ax.texts if isinstance(text, Annotation) and text.arrow_patch]


def titles(figure):
    return [ax.get_title(loc="left") for ax in figure.axes]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def rendered(figure):
    """The picture's bytes: it can be drawn, and is small."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    assert len(buffer.getvalue()) < 80_000
    return figure


def test_every_message_is_an_arrow_with_its_slice():
    schedule = ring.ring_broadcast(4, 8)
    figure = rendered(figures.draw_space_time(schedule))
    (ax,) = figure.axes
    assert len(arrows(ax)) == len(schedule.sends) == 24
    assert sorted(texts(ax)) == sorted(str(send.slice) for send in schedule.sends)
    assert titles(figure) == ["broadcast: 4 ranks, 8 slices, 10 steps"]
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"rank {i}" for i in range(4)]
    found = sorted((a.xy[0], a.xy[1]) for a in ax.texts if isinstance(a, Annotation))
    assert found == sorted((send.step + 0.96, send.destination) for send in schedule.sends)


def test_additions_are_dashed_and_wide_messages_name_all_their_slices():
    (ax,) = figures.draw_space_time(recursive.halving_doubling_all_reduce(4, 4)).axes
    dashed = [arrow for arrow in arrows(ax) if arrow.get_linestyle() not in ("-", "solid")]
    assert len(dashed) == 8
    assert texts(ax).count("2–3") == texts(ax).count("0–1") == 4


def test_neighbouring_slices_have_colours_of_their_own():
    assert len(set(figures.SLICES)) == 8
    (ax,) = figures.draw_space_time(ring.ring_broadcast(2, 8)).axes
    assert len({arrow.get_edgecolor() for arrow in arrows(ax)}) == 8


def test_links_are_rows_of_bars():
    schedule = ring.ring_all_reduce(4, 4)
    (ax,) = rendered(figures.draw_links(schedule)).axes
    bars = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert len(bars) == 24
    assert sum(bool(bar.get_hatch()) for bar in bars) == 12
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0 → 1", "1 → 2", "2 → 3", "3 → 0"]
    assert legend(ax) == ["adds", "overwrites"]
    places = {(bar.get_x(), round(bar.get_y() + 0.42)) for bar in bars}
    assert places == {(t, link) for t in range(6) for link in range(4)}  # no link waits
    (ax,) = figures.draw_links(ring.ring_broadcast(4, 8)).axes
    assert ax.get_legend() is None


def test_holdings_show_how_many_ranks_data_is_where():
    (ax,) = rendered(figures.draw_holdings(ring.ring_all_reduce(3, 3))).axes
    assert len(ax.patches) == 3 * 3 * 5
    assert texts(ax).count("3") == 1 * 3 + 2 * 3 + 3 * 3  # complete slices: three after step 1, six, then all nine
    (ax,) = figures.draw_holdings(ring.ring_broadcast(3, 2)).axes
    white = [patch for patch in ax.patches if patch.get_facecolor()[:3] == (1, 1, 1)]
    assert len(white) == 4 + 3 + 1  # what ranks lack before the first step and after each
    assert texts(ax) == []
    assert ranks_of(0b11) == [0, 1]


def test_pictures_that_nobody_could_read_are_refused():
    with pytest.raises(ValueError, match="252 arrows would cover each other; draw at most 200, or use draw_links"):
        figures.draw_space_time(ring.ring_broadcast(8, 36))
    with pytest.raises(ValueError, match="too many to read; draw a smaller schedule"):
        figures.draw_links(ring.ring_all_reduce(32, 96))
    with pytest.raises(ValueError, match="too many to read; draw a smaller schedule"):
        figures.draw_holdings(ring.ring_broadcast(8, 64))


@pytest.mark.parametrize(
    "schedule",
    [ring.ring_broadcast(1, 2), tree.tree_all_reduce(8, 2)],
    ids=lambda schedule: f"{schedule.collective}, {schedule.ranks}",
)
def test_other_schedules_can_be_drawn(schedule):
    for draw in (figures.draw_space_time, figures.draw_links, figures.draw_holdings):
        rendered(draw(schedule))


# --- Curves --------------------------------------------------------------------------------------------------------


def test_the_curve_over_s_has_its_best_and_the_readings_with_their_label():
    readings = ring_readings.curve(4, "gbps")
    found = ring_readings.check(4, 1, 256)
    figure = rendered(figures.draw_slices(measurements.N, 4, found.link, readings, "recorded somewhere", found.points))
    (ax,) = figure.axes
    assert "S* = 33" in texts(ax)
    points = {
        (line.get_xdata()[0], line.get_ydata()[0]): line.get_markerfacecolor()
        for line in ax.lines
        if len(line.get_xdata()) == 1
    }
    assert set(points) == {(s, gbps) for s, gbps in readings.items()}
    assert [s for (s, _), colour in points.items() if colour != "white"] == [1, 256]
    assert legend(ax) == ["model: α 4.9 µs, B 397 GB/s", "recorded somewhere", "of these, fitted"]
    assert titles(figure) == ["ring broadcast, 4 ranks, 1 GiB"]


def test_measured_curves_have_their_names_their_points_and_a_level():
    curves = {"2 GPUs": {1: 396.0, 4: 390.0}, "4 GPUs": {1: 132.0, 4: 260.0}}
    figure = rendered(figures.draw_measured(curves, "recorded", xlabel="slices S", ylabel="GB/s", level=300))
    (ax,) = figure.axes
    drawn = {line.get_label(): dict(zip(line.get_xdata(), line.get_ydata(), strict=True)) for line in ax.lines[:2]}
    assert drawn == curves
    assert set(ax.lines[2].get_ydata()) == {300}
    assert legend(ax) == list(curves)
    assert titles(figure) == ["recorded"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "4"]
    sizes = rendered(figures.draw_measured({"a": {2**20: 1}}, "", xlabel="size", ylabel="")).axes[0]
    assert [label.get_text() for label in sizes.get_xticklabels()] == ["1 MiB"]


def test_two_ranks_have_no_best_s_to_mark():
    (ax,) = figures.draw_slices(2**30, 2, LINK).axes
    assert not any("S*" in text for text in texts(ax))


def test_algorithms_are_compared_over_sizes():
    (ax,) = rendered(figures.draw_algorithms("all-reduce", 8, LINK)).axes
    assert legend(ax) == ["ring all-reduce", "tree all-reduce", "recursive doubling", "halving and doubling"]
    (ax,) = figures.draw_algorithms("all-reduce", 6, LINK).axes
    assert legend(ax) == ["ring all-reduce", "tree all-reduce"]  # 6 is no power of two
    (ax,) = figures.draw_algorithms("broadcast", 8, LINK).axes
    strip = {line.get_color() for line in ax.lines if len(line.get_xdata()) == 2}
    assert len(strip) >= 2  # one wins for small sizes, another for large
    with pytest.raises(ValueError, match="there is no algorithm for 'gather'"):
        figures.draw_algorithms("gather", 8, LINK)


# --- Topologies ----------------------------------------------------------------------------------------------------

WIRES = [
    topology.pcie_tree(4),
    topology.pcie_tree(8),
    topology.cube_mesh(),
    topology.nodes_on_infiniband(2, 4),
]


@pytest.mark.parametrize("wires", WIRES, ids=lambda wires: wires.name)
def test_every_node_is_drawn_in_a_place_of_its_own(wires):
    (ax,) = rendered(figures.draw_topology(wires)).axes
    assert set(texts(ax)) == {node.replace("GPU ", "") for edge in wires.edges for node in edge}
    assert len(set(wires.places.values())) == len(wires.places)
    for node, (x, y) in wires.places.items():  # no link runs behind a node that is not its own
        for edge in wires.edges:
            if node not in edge:
                assert _away((x, y), *(wires.places[end] for end in edge)) > 0.15, (node, edge)


def _away(point, a, b):
    """The distance of a point from the line between a and b."""
    (x, y), (x1, y1), (x2, y2) = point, a, b
    length = (x2 - x1) ** 2 + (y2 - y1) ** 2
    t = max(0.0, min(1.0, ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / length))
    return ((x - x1 - t * (x2 - x1)) ** 2 + (y - y1 - t * (y2 - y1)) ** 2) ** 0.5


def test_a_ring_is_an_arrow_along_each_edge_it_uses():
    tree = topology.pcie_tree(4)
    (ax,) = figures.draw_topology(tree, [topology.leaves(tree)]).axes
    assert len(arrows(ax)) == len(tree.edges) == 12
    assert not any("×" in text for text in texts(ax))
    (ax,) = figures.draw_topology(tree, [[0, 2, 1, 3]]).axes
    assert texts(ax).count("2 ×") == 4
    (ax,) = figures.draw_topology(topology.cube_mesh(), topology.disjoint_rings()).axes
    assert len(arrows(ax)) == 3 * 8
    assert len({arrow.get_edgecolor() for arrow in arrows(ax)}) == 3
    assert all(isinstance(arrow, FancyArrowPatch) for arrow in arrows(ax))


def test_each_ring_can_have_a_picture_of_its_own():
    figure = figures.draw_rings(topology.cube_mesh(), topology.disjoint_rings(), "three rings")
    assert [len(arrows(ax)) for ax in figure.axes] == [8, 8, 8]
    colours = [{arrow.get_edgecolor() for arrow in arrows(ax)} for ax in figure.axes]
    assert len(set.union(*colours)) == 3
    assert all(len(colour) == 1 for colour in colours)
    assert figure.axes[0].get_title(loc="left") == "three rings"


def test_a_topology_without_places_is_refused():
    bare = topology.Topology("bare", 2, {("GPU 0", "GPU 1"): 1e9})
    with pytest.raises(ValueError, match="bare says of no node where to draw it"):
        figures.draw_topology(bare)


# --- Training ------------------------------------------------------------------------------------------------------


def test_the_timeline_of_a_step_has_all_its_buckets():
    layers = NETWORKS["ResNet-50"]
    after = step(layers, 0.1, 64, CLUSTER.all_reduce, overlap=False)
    hidden = step(layers, 0.1, 64, CLUSTER.all_reduce)
    figure = rendered(figures.draw_overlap(after=after, in_buckets=hidden))
    assert [title.split(":")[0] for title in titles(figure)] == ["after", "in buckets"]
    for ax, found in zip(figure.axes, (after, hidden), strict=True):
        bars = [(bar.get_y() + bar.get_height() / 2, bar.get_x(), bar.get_width()) for bar in ax.patches]
        network = sum(width for row, _, width in bars if row == pytest.approx(1))
        assert network == pytest.approx(1e3 * sum(bucket.end - bucket.begin for bucket in found.buckets))
        computing = sum(width for row, _, width in bars if row == pytest.approx(0))
        assert computing == pytest.approx(100)
        assert max(x + width for _, x, width in bars) == pytest.approx(1e3 * found.end)
    assert f"{1e3 * hidden.exposed:.1f} ms of all-reduces not hidden" in titles(figure)[1]


def test_scaling_curves_are_what_the_functions_say():
    figure = rendered(figures.draw_scaling([8, 64, 512], flat_ring=lambda k: 8 / k, ideal=lambda k: 1))
    (ax,) = figure.axes
    assert legend(ax) == ["flat ring", "ideal"]
    assert list(ax.lines[0].get_ydata()) == [100, 12.5, 800 / 512]


def test_published_points_are_beside_the_models():
    (ax,) = rendered(figures.draw_published()).axes
    points = [line for line in ax.lines if len(line.get_xdata()) == 1]
    assert len(points) == 2 * sum(len(curve.published) for curve in CURVES)
    assert {curve.title for curve in CURVES} <= set(texts(ax))
    assert legend(ax) == ["published", "the model, nothing fitted"]

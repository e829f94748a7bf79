"""The picture of a tile's life: when a warp requests it, when it has arrived and when it is used, beside the others."""

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from warpcourse.bench.charts import chart
from warplab.draw.style import BLUE, GREY, ORANGE, closed
from warplab.launch.profile_queries import one_launch, source_lines
from warplab.simulator.count.counters import LaunchProfile

KINDS = ("order", "commit", "come", "barrier", "use")


def tile_events(launch: LaunchProfile, lines: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return what warp 0 of block 0 did, in order: (kind, number of the tile), kind being order, come, barrier or use.

    `lines`: piece of a source line -> its kind: "order" (a load or copy is started), "commit" (the copies ordered so
    far are one tile's; without such lines those up to the barrier), "come" (it lies in shared memory), "barrier",
    "use". The n-th tile that is ordered is the n-th to come and to be used; a barrier has the number of the latest to
    come. What follows of one kind is one event.
    Raise ValueError for another kind, and where no such line was run.
    """
    wrong = set(lines.values()) - set(KINDS)
    if wrong:
        raise ValueError(f"there is no kind {', '.join(sorted(wrong))}; choose among {', '.join(KINDS)}")
    events: list[tuple[str, int]] = []
    number, closed_since = dict.fromkeys(KINDS, -1), dict.fromkeys(KINDS, True)
    for (step,) in launch.steps.together(0, [0]):
        text = source_lines(launch, step.file, [step.line])[step.line]
        kind = next((kind for piece, kind in lines.items() if piece in text), "")
        if not kind:
            continue
        number[kind] += closed_since[kind]
        closed_since[kind] = False
        if kind in ("commit", "barrier", "use"):
            closed_since |= {other: True for other in KINDS if other != kind}
        event = kind, number["come"] if kind == "barrier" else number[kind]
        if kind == "come" and event in events:  # it is there when its last part is
            events.remove(event)
        if kind != "commit" and (kind == "barrier" or event not in events) and events[-1:] != [event]:
            events.append(event)
    for kind in ("order", "come", "use"):
        if number[kind] < 0:
            raise ValueError(f"the trace of {launch.kernel} holds no line of the kind {kind}")
    return events


def draw_pipeline(profile: object, lines: Mapping[str, str], tiles: int = 4) -> Figure:
    """Draw the first `tiles` tiles of a product, one below the other: on the way, and used. Columns are steps, not
    times.

    `profile`: a launch in the simulator with a trace of its first warp; `lines`: as for `tile_events`.
    """
    launch, _ = one_launch(profile)
    events = tile_events(launch, lines)
    last = next((k for k, event in enumerate(events) if event == ("use", tiles - 1)), len(events) - 1)
    events = events[: last + 1]
    at = {event: place for place, event in reversed(list(enumerate(events)))}
    with chart(figsize=(7.5, 0.34 * tiles + 1.35)) as (figure, ax):
        for tile in range(tiles):
            start = at[("order", tile)]
            ax.broken_barh([(start, at[("come", tile)] + 1 - start)], (tile - 0.35, 0.7), color=BLUE)
            ax.broken_barh([(at[("use", tile)], 1)], (tile - 0.35, 0.7), color=ORANGE)
        for place, (kind, _) in enumerate(events):
            if kind == "barrier":
                ax.axvspan(place + 0.35, place + 0.65, color=GREY, alpha=0.35, lw=0, zorder=0.5)
        ax.set_yticks(range(tiles), [f"tiles {tile}" for tile in range(tiles)])
        ax.set_xticks([place + 0.5 for place in range(len(events))], range(len(events)))
        ax.set(xlim=(0, len(events)), ylim=(tiles - 0.5, -0.5), xlabel="step (widths tell no time)")
        ax.tick_params(length=0)
        ax.spines[["top", "right"]].set_visible(False)
        handles = [
            Patch(color=BLUE, label="on the way: from its order until it has come"),
            Patch(color=ORANGE, label="used: multiply-adds"),
            Patch(color=GREY, alpha=0.35, label="barrier"),
        ]
        ax.legend(handles=handles, frameon=False, loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=3, fontsize=8)
        name = launch.kernel.partition("<")[0]
        figure.suptitle(
            f"{name}: the tiles of A and B, as the first warp ran", fontsize=9, weight="bold", x=0.02, ha="left"
        )
        figure.tight_layout(pad=0.6)
    ways = [
        f"tiles {k}: ordered in step {at['order', k]}, come in {at['come', k]}, used in {at['use', k]}"
        for k in range(tiles)
    ]
    return closed(figure, "; ".join(ways))

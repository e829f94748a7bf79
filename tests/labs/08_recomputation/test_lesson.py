"""The numbers that lab 08's text quotes are those recorded, or follow from the model."""

import nbformat
import pytest

from kernels.recomputation import plan as plans
from kernels.recomputation import recordings, resnet, silu
from warpcourse.paths import COURSE

LESSON = COURSE / "notebooks" / "08_recomputation.ipynb"
VALUES = recordings.values()
MIB = 2**20


def seconds(entry, name):
    tables = VALUES["kernel_table"]["rows"] + VALUES["pytorch_silu"]["rows"]
    (found,) = (row["seconds"] for row in tables if (row["entry"], row["name"]) == (entry, name))
    return found


def kernels():
    again = seconds("silu", "cuda_float4") + seconds("silu_backward", "cuda_float4")
    stored = seconds("silu_storing", "cuda_float4") + seconds("silu_storing_backward", "cuda_float4")
    library = seconds("silu", "PyTorch") + seconds("silu_backward", "PyTorch")
    bytes_of = [sum(silu.nbytes(way + end, 1) for end in ("", "_backward")) for way in ("silu_storing", "silu")]
    return (
        f"take {again * 1e6:.0f} µs instead of {stored * 1e6:.0f}",
        f"**{stored / again:.2f}** times as fast, just what {bytes_of[0]} / {bytes_of[1]} says",
        f"it took {library * 1e6:.0f} µs there",
        f"With one element per thread, as in yours, it is {one_each():.2f}, all of it in the forward pass",
    )


def one_each():
    """How many times as fast both passes of the Numba kernels are if they recompute; the backward pass is no faster."""
    stored, again = ((seconds(way, "numba"), seconds(f"{way}_backward", "numba")) for way in ("silu_storing", "silu"))
    assert stored[1] < again[1]
    return sum(stored) / sum(again)


def lengths():
    rows = {row["length"]: row for row in VALUES["pytorch_segments"]["rows"]}
    assert rows[4]["peak_bytes"] == rows[8]["peak_bytes"] == min(row["peak_bytes"] for row in rows.values())
    assert 1.25 < rows[8]["seconds"] / rows[64]["seconds"] < 1.33
    assert rows[1]["seconds"] > rows[2]["seconds"] > rows[4]["seconds"] > rows[8]["seconds"]
    more = rows[8]["evaluations"] - rows[64]["evaluations"]
    activations = [-(-64 // length) - 1 + 2 * length for length in (4, 8)]
    assert [16 * count + 4 for count in activations] == [round(rows[k]["peak_bytes"] / MIB) for k in (4, 8)]
    jax = {(row["layers"], row["segments"]): row["temporary_bytes"] / MIB for row in VALUES["jax_depth"]["rows"]}
    return (
        f"16 layers take {jax[16, 1]:.0f} MiB in one segment and {jax[16, 4]:.0f} in four",
        f"segments of 8 run {more} layers more, and ({more} / 64) / 3 is {more / 64 / 3:.2f}",
        f"{activations[0]} activations and 4 MiB",
    )


def batches():
    inputs, inside = resnet.bytes_of(resnet.blocks(101))
    weights = 4 * resnet.parameters(101) / MIB
    kept, best = (plans.peak(plan, inputs, inside) / MIB for plan in ((0,), plans.best(inputs, inside)))
    assert round(4 * weights) == 680
    assert (4096 - 680) // round(kept) == 28
    assert (4096 - 680) // round(best) == 155
    return (
        f"{4 * weights:.0f} MiB for weights",
        f"{kept:.0f} or {best:.0f} MiB per image",
        "28 becomes one of **155**",
    )


def tried():
    """(precision, way): the largest batch in 4 GiB."""
    return {(row["precision"], row["way"]): row["batch"] for row in VALUES["pytorch_largest_batch"]["rows"]}


def largest_batches():
    found = tried()
    ratio = found["float32", "best"] / found["float32", "kept"]
    half = " and ".join(str(found["bfloat16", way]) for way in ("kept", "best"))
    return (
        f"From {found['float32', 'kept']} images to **{found['float32', 'best']}**: {ratio:.1f} times as many, not 5.5",
        f"it is {half}",
    )


def resnet_steps():
    rows = {(row["batch"], row["precision"], row["way"]): row for row in VALUES["pytorch_resnet"]["rows"]}
    kept, best = (rows[64, "float32", way]["peak_bytes"] / 64 / MIB for way in ("kept", "best"))
    of_64 = {way: row["seconds"] for (batch, kind, way), row in rows.items() if (batch, kind) == (64, "bfloat16")}
    more = [rows[256, "bfloat16", way]["seconds"] / took for way, took in of_64.items()]
    return (
        f"Four times the images took only {min(more):.1f} to {max(more):.1f} times as long",
        f"Kept, an image takes {kept:.0f} MiB where the model says 121",
        f"By the best plan it takes {best:.0f} and not 22",
        f"{longer(64, 'float32')} with 64 images in FP32, {longer(256, 'bfloat16')} with 256 in BF16",
        f"With 64 in BF16 it took {longer(64, 'bfloat16')}",
    )


def longer(batch, precision):
    """By how much longer a step of ResNet-101 with recomputation took than one that keeps all, in percent."""
    rows = [r for r in VALUES["pytorch_resnet"]["rows"] if (r["batch"], r["precision"]) == (batch, precision)]
    (kept,) = (row["seconds"] for row in rows if row["way"] == "kept")
    more = [100 * (row["seconds"] / kept - 1) for row in rows if row["way"] != "kept"]
    return f"{min(more):.0f} to {max(more):.0f} %"


def levers():
    """Bytes per parameter on each of 64 GPUs as ZeRO's paper counts them, and what attention keeps in GPT-3."""
    zero = [4 + 12 / 64, 2 + 14 / 64, 16 / 64]
    assert [f"{7.5 * each:.1f}" for each in zero] == ["31.4", "16.6", "1.9"]  # GB of 7.5 B parameters, figure 1
    h, a, s = 12288, 96, 2048
    scores = 5 * a * s / (34 * h + 5 * a * s)
    again = 4 * s * h / (24 * h**2 + 4 * s * h)  # operations of the two products with the scores, of all, per token
    return (
        *(f"| {each:.2f} |" for each in zero),
        f"(h = {h:,}, a = {a}, s = {s}) {100 * scores:.0f} % of the activations, for {100 * again:.1f} % of a forward",
    )


def verdict():
    found = tried()
    torch = {row["length"]: row["seconds"] for row in VALUES["pytorch_segments"]["rows"]}
    jax = {row["way"]: row["seconds"] for row in VALUES["jax_depth"]["rows"] if row["layers"] == 64}
    sizes = resnet.bytes_of(resnet.blocks(101))
    ways = (0,), plans.square_root(len(sizes[0])), plans.best(*sizes)
    kept, *fewer = (plans.peak(plan, *sizes) for plan in ways)
    even, best = (f"{1 - peak / kept:.0%}".replace("%", " %") for peak in fewer)
    return (
        f"equal segments save {even} of the activations, the best plan {best} by the model",
        f"with four elements per thread, {one_each():.2f} with one",
        f"the step takes {torch[8] / torch[64] - 1:.0%} longer (PyTorch)".replace("%", " %"),
        f"exceed it, with {torch[2] / torch[64] - 1:.0%} and {torch[1] / torch[64] - 1:.0%}".replace("%", " %"),
        f"{jax['√n'] / jax['kept'] - 1:.0%} longer when XLA compiles it".replace("%", " %"),
        f"took {longer(64, 'float32')} longer in FP32, 64 images, and {longer(256, 'bfloat16')} in BF16, 256;",
        f"the limit, {longer(64, 'bfloat16')}.",
        "155 images fit where 28 did",
        f"from {found['float32', 'kept']} to {found['float32', 'best']} in float32",
        f"from {found['bfloat16', 'kept']} to {found['bfloat16', 'best']} in BF16",
    )


QUOTED = {
    "recomputation-gpu-lengths-text": lengths,
    "recomputation-batch-after": batches,
    "recomputation-batch-recorded-after": largest_batches,
    "recomputation-resnet-recorded-after": resnet_steps,
    "recomputation-zero-after": levers,
    "recomputation-kernel-after": kernels,
    "recomputation-verdict-text": verdict,
}


@pytest.mark.parametrize("cell", QUOTED)
def test_the_text_quotes_what_was_recorded(cell):
    text = next(c.source for c in nbformat.read(LESSON, as_version=4).cells if c.id == cell)
    for phrase in QUOTED[cell]():
        assert phrase in text


def test_the_kernels_header_gives_what_was_recorded():
    header = silu.SOURCES.text("silu.cu").replace("\n//", "")
    again = seconds("silu", "cuda_float4") + seconds("silu_backward", "cuda_float4")
    stored = seconds("silu_storing", "cuda_float4") + seconds("silu_storing_backward", "cuda_float4")
    assert f"recomputing {again * 1e6:.0f} µs, storing {stored * 1e6:.0f} µs, a ratio of {stored / again:.2f}" in header
    library = seconds("silu", "PyTorch") + seconds("silu_backward", "PyTorch")
    assert f"SiLU, which recomputes as well, {library * 1e6:.0f} µs" in header
    rates = {(row["entry"], row["name"]): row["gbps"] for row in VALUES["kernel_table"]["rows"]}
    forward, backward = (rates[entry, "cuda_float4"] for entry in ("silu", "silu_backward"))
    assert f"{forward:.0f} GB/s forward and {backward:.0f} backward where a copy reaches" in header
    assert f"{rates['copy', 'copy']:.0f}. {recordings.recorded('kernel_table').origin}" in header


@pytest.mark.parametrize("key", VALUES)
def test_what_was_recorded_was_right(key):
    rows = VALUES[key].get("rows", [VALUES[key]])  # one table, or one row of its own
    assert rows
    assert all(row.get("correct", True) for row in rows)

"""Measure this machine's GPU for estimates: `python -m warplab measure-card` prints its paragraph for cards.toml.

    python -m warplab measure-card [NAME]

What the driver reports, and rates from the project's own sweeps, each with its source; what they do not give is assumed
from the H100's, as `warplab.estimating.rates` says. An estimate with these rates is held to no launch of that card.
The command has never run on a GPU: tests hold its rules to recordings of an H100 (tests/warpcourse/bench). Its sweeps
are an H100's, of 132 multiprocessors, whose kernels no test launches.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from warpcourse.bench import timing
from warpcourse.bench.lab import find
from warpcourse.bench.sweeps import atomics, blocks, caches, instructions
from warplab.hardware.cards import CARDS, Card

UNTRIED = (
    "This command has never run on a GPU; its rules are held to recordings of an H100 alone. Compare what it gives "
    "with the data sheet before you trust an estimate."
)
OF_THE_LAB = ("working_sets", "latencies", "bank_conflicts")
LEAST_L2 = caches.MEMORY["L2"] * 5 // 4  # of which four fifths hold what sweeps take to be in the L2
Rows = list[dict[str, Any]]
_SMALL_MEMORY = 1024  # bits of a bus; wider ones are HBM's, whose accesses move 64 bytes at least


def measured() -> dict[str, Any]:
    """Run the sweeps, those of lab 02 among them."""
    of_the_lab = find("memory_access").module("measurements").MEASUREMENTS
    return {
        **{name: of_the_lab[name]() for name in OF_THE_LAB},
        "global_atomics": list(atomics.global_atomics()),
        "scattered": list(caches.scattered()),
        "streams": list(caches.streams()),
        "chains": list(instructions.chains()),
        "atomic_latencies": list(instructions.latencies()),
        "starts": list(blocks.starts()),
        "clocks": list(blocks.clocks()),
    }


def rates(found: dict[str, Any], l2_bytes: int) -> dict[str, float]:
    """Return the rates that sweeps say, by their names in `warplab.estimating.rates`."""
    clock = max(row["hz"] for row in found["clocks"] if row["what"] == "ffma")
    launch = _launch(found["bank_conflicts"]["rows"])
    sets, chase = found["working_sets"]["rows"], found["latencies"]
    in_l2 = [r["gbps"] for r in sets if 4 << 20 <= r["bytes"] <= 0.8 * l2_bytes]
    lanes = {row["access"]: _per_second(row, launch) for row in found["scattered"] if _apart(row, "memory")}
    streams = {
        (row["reads"], row["writes"]): row["nbytes"] / (row["seconds"] - launch)
        for row in found["streams"]
        if row["bytes"] == 16
    }
    starting = [
        (row["seconds"] - launch) / row["blocks"]
        for row in found["starts"]
        if row["warps"] < 32 and not row["shared_bytes"]
    ]
    whole = [
        128 * row["bytes"] // 4 * row["requests"] / (row["seconds"] - launch)
        for row in found["scattered"]
        if (row["access"], row["place"], 4 * row["lines"]) == ("l2_stores", "L2", row["bytes"])
    ]
    return {
        "clock_hz": clock,
        "l1_latency": chase[0]["seconds"],
        "shared_latency": next(r["latency"] for r in found["chains"] if (r["step"], r.get("words")) == ("lds", 1)),
        "l2_latency": statistics.median(r["seconds"] for r in chase if 1 << 20 <= r["bytes"] <= l2_bytes / 3),
        "memory_latency": statistics.median(r["seconds"] for r in chase if r["bytes"] > l2_bytes),
        "read_bandwidth": streams[1, 0],
        "copy_bandwidth": streams[1, 1],
        "scattered_bandwidth": 64 * lanes["l2_loads"],
        "scattered_stores": lanes["l2_stores"],
        "l2_bandwidth": 1e9 * statistics.median(in_l2),
        "l2_stores": statistics.median(whole),
        "atomic_latency": next(r["latency"] for r in found["atomic_latencies"] if r["what"] == "global atomic"),
        "atomic_clocks": clock * _same_word(found["global_atomics"], "red_add_u32"),
        "atomic_float_clocks": clock * _same_word(found["global_atomics"], "red_add_f32"),
        "block_clocks": clock * min(starting),
        "launch_seconds": launch,
    }


def _launch(rows: Rows) -> float:
    """Return what is left of a launch's seconds at no wavefront."""
    return float(np.polyfit([row["ways"] for row in rows], [row["seconds"] for row in rows], 1)[1])


def _apart(row: dict[str, Any], place: str) -> bool:
    return (row["place"], row["bytes"], row["lines"]) == (place, 4, 32)


def _per_second(row: dict[str, Any], launch: float) -> float:
    return row["requests"] * row["lines"] / (row["seconds"] - launch)


def _same_word(rows: Rows, instruction: str) -> float:
    """Return seconds from one atomic to the next on the same word, by what more of them take."""
    same = [r for r in rows if r["instruction"] == instruction and (r["lanes"], r["words"], r["sharing"]) == (1, 1, 1)]
    same.sort(key=lambda row: row["requests"])
    some, most = same[-2:]
    return (most["seconds"] - some["seconds"]) / (most["requests"] - some["requests"])


def alike(about: dict[str, int]) -> Card:
    """Return a card of the same compute capability, whose SM's limits this one has. Raises ValueError for none."""
    capability = (about["ComputeCapabilityMajor"], about["ComputeCapabilityMinor"])
    found = next((card for card in CARDS.values() if card.compute_capability == capability), None)
    if found is None:
        text = "{}.{}".format(*capability)
        raise ValueError(
            f'cards.toml has no compute capability {text}: add [capability."{text}"] first, from the '
            "CUDA programming guide"
        )
    return found


def paragraph(name: str, device: str, about: dict[str, int], found: dict[str, float], date: str) -> str:
    """Return a card's paragraph of cards.toml. `about`: attributes of the device by the driver's names.

    Raises ValueError where no card of its compute capability is known.
    """
    known = alike(about)
    capability = known.compute_capability
    sms, mhz, bits = about["MultiProcessorCount"], about["ClockRate"] // 1000, about["GlobalMemoryBusWidth"]
    memory_mhz = about["MemoryClockRate"] / 1000
    follows = f"from what the driver reports, {date}"
    card: dict[str, Any] = {
        "full_name": device.removeprefix("NVIDIA "),
        "year": [int(date[:4]), "of the measurement; the card's may be earlier"],
        "compute_capability": "{}.{}".format(*capability),
        "source": f"device properties that the driver reports, {date}",
        "sms": sms,
        "clock_mhz": mhz,
        "fp32_tflops": [round(2e-6 * sms * known.fp32_cores * mhz, 1), follows],
        "bandwidth_gbs": [round(bits / 8 * 2 * memory_mhz / 1000), follows],
        "memory_bits": bits,
        "memory_mhz": round(memory_mhz),
        "l2_bytes": about["L2CacheSize"],
    }
    if known.tensor_fma is not None:
        card["tensor_tflops"] = [round(2e-6 * sms * known.tensor_fma * mhz, 1), follows]
        card["tensor_clock_mhz"] = mhz
    more = {
        "memory_bytes": [64 if bits > _SMALL_MEMORY else 32, "assumed: by its kind of memory"],
        "l1_bytes": [known.rates["l1_bytes"], f"assumed: as on the {known.name}, {date[:4]}"],
        "mma_flops": [_mma(known, sms, mhz), "assumed: 95 % of the peak"],
        "wgmma_flops": [
            _mma(known, sms, mhz) if capability == (9, 0) else 0.0,
            "assumed: 95 % of the peak; 0 but on 9.0",
        ],
    }
    rows = [f"[card.{_text(name)}]", *_rows(card.items()), "", f"[card.{_text(name)}.rates]"]
    rows += _rows({"source": f"sweeps measured on an {device}, {date}"}.items())
    rows += _rows((rate, float(f"{value:.4g}")) for rate, value in found.items())
    return "\n".join([*rows, *_rows(more.items()), ""])


def _mma(alike: Card, sms: int, mhz: int) -> float:
    return float(f"{0.95 * 2e6 * sms * (alike.tensor_fma or 0) * mhz:.4g}")


def _rows(items: Iterable[tuple[str, Any]]) -> list[str]:
    return [
        f"{key} = [{value[0]}, {_text(value[1])}]"
        if isinstance(value, list)
        else f"{key} = {_text(value) if isinstance(value, str) else value}"
        for key, value in items
    ]


def _text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m warplab measure-card", description=f"{__doc__.splitlines()[0]} {UNTRIED}"
    )
    parser.add_argument(
        "name", nargs="?", help='what to call it, as in card="RTX 4080"; otherwise what its driver does'
    )
    options = parser.parse_args(arguments)
    timing.require_gpu("measure-card")
    cupy, machine = timing.cupy_on_gpu(), timing.machine()
    print(UNTRIED, file=sys.stderr)
    about = dict(cupy.cuda.Device().attributes)
    device = machine["device"]
    try:  # before minutes of sweeps
        alike(about)
    except ValueError as error:
        raise SystemExit(f"error: {error}") from error
    if about["L2CacheSize"] < LEAST_L2:
        raise SystemExit(f"error: sweeps need an L2 of {LEAST_L2 >> 20} MiB; this one has {about['L2CacheSize']} bytes")
    found = rates(measured(), about["L2CacheSize"])
    print(f"# Add this to warplab/hardware/cards.toml; measured on {device}, {machine['date']}.\n# {UNTRIED}\n")
    print(paragraph(options.name or device.removeprefix("NVIDIA "), device, about, found, machine["date"]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

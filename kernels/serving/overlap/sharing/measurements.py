"""What the processes of `sharing` measure on a GPU: the ways to share, big batches, shares of SMs, faults, clients.

Keys end in their unit: `seconds`, `images_per_second`. A row's latencies are of all its requests together. `correct`:
every answer was compared bit by bit with one that had been compared with NumPy's; a wrong one ends the measurement.
"""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any

from kernels.serving.overlap.sharing import mps
from kernels.serving.overlap.sharing.clients import ClientFailed, Clients, Load, Reading, summary
from kernels.serving.small_network import Requests, SmallNetwork, on_device
from warpcourse.bench import timing
from warpcourse.bench.benchmark import Table
from warpcourse.paths import COURSE
from warpcourse.processes.child import module

NETWORK = SmallNetwork()
CLIENTS = (1, 2, 4, 8, 16)
BATCHES_SHARED = {"time slices": (1, 16), "MPS": (1, 4, 16)}  # of each of the clients
STREAMS_PER_CLIENT = (2, 4)
BATCHES_ALONE = (1, 2, 4, 8, 16, 32, 64, 128, 256)
LARGE = 64  # images of a batch that fills the GPU
PERCENTAGES = (100, 75, 50, 25, 10)  # of the SMs' threads that a client may use
ASKED_FOR = 64  # clients: more than MPS's documentation allows


def ways() -> dict[str, Any]:
    """Measure throughput and latency of k requests in flight, by way, k and batch; what one takes on the GPU alone."""
    rows: list[dict[str, Any]] = []
    timing.cupy_on_gpu()
    with Clients([{}] * max(CLIENTS), NETWORK) as clients:
        for batch in BATCHES_SHARED["time slices"]:
            rows += [_row("time slices", clients.serve([Load(batch)] * k), k, batch) for k in CLIENTS]
        rows += [_row("streams", clients.serve([Load(streams=k)]), k, 1) for k in CLIENTS]
        calls = clients.serve([Load(graph=False)])
    connected, failed = 0, ""
    try:
        with mps.daemon() as mps_daemon, Clients([mps_daemon.environment] * max(CLIENTS), NETWORK) as clients:
            connected = mps_daemon.clients()
            for batch in BATCHES_SHARED["MPS"]:
                rows += [_row("MPS", clients.serve([Load(batch)] * k), k, batch) for k in CLIENTS]
    except (mps.NoMps, ClientFailed) as error:
        failed = str(error)  # a machine without MPS still has the other rows
    return {
        **_about(NETWORK),
        "mps_clients": connected,
        "mps_error": failed,
        "cores": len(os.sched_getaffinity(0)),
        "alone": request_times(BATCHES_SHARED["MPS"]),
        "without_graph": {**summary(calls), "correct": True},
        "rows": rows,
    }


def saturated() -> dict[str, Any]:
    """Measure more requests in flight than the GPU has room for, batch 1: MPS, several per client; streams of one.

    A client that waits occupies a core of the host, so that more clients than cores would measure the host.
    """
    rows = []
    timing.cupy_on_gpu()
    with mps.daemon() as mps_daemon, Clients([mps_daemon.environment] * max(CLIENTS), NETWORK) as clients:
        for streams in STREAMS_PER_CLIENT:
            k = max(CLIENTS)
            rows.append(_row("MPS", clients.serve([Load(streams=streams)] * k), k * streams, 1))
    with Clients([{}], NETWORK) as clients:
        for streams in STREAMS_PER_CLIENT:
            k = max(CLIENTS) * streams
            rows.append(_row("streams", clients.serve([Load(streams=k)]), k, 1))
    return {**_about(NETWORK), "mps_clients": max(CLIENTS), "rows": rows}


def batches() -> dict[str, Any]:
    """Measure one process, one request in flight, by the images in it: throughput and latency."""
    timing.cupy_on_gpu()
    with Clients([{}], NETWORK) as clients:
        rows = [_row("one batch", clients.serve([Load(batch)]), 1, batch) for batch in BATCHES_ALONE]
    return {**_about(NETWORK), "alone": request_times(BATCHES_ALONE), "rows": rows}


def request_times(sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Measure GPU seconds of one request by batch, copies included, back to back so that the host's time stays out."""
    weights, rows = on_device(NETWORK), []
    for batch in sizes:
        requests = Requests(NETWORK, weights, batch)
        with requests.stream:
            rows.append({"batch": batch, "seconds": timing.time_gpu(requests.queue, runs=20).seconds})
    return rows


def parts() -> dict[str, Any]:
    """Measure clients of MPS with a part of the SMs: alone with a large batch, and a small request beside a large one.

    `alone`: throughput at a batch of LARGE by CUDA_MPS_ACTIVE_THREAD_PERCENTAGE. `neighbours`: latency of requests of
    one image, alone and beside a client with batches of LARGE: by time slices, by MPS, by MPS with half each, and with
    a tenth and the rest.
    """
    timing.cupy_on_gpu()
    alone, neighbours = [], []

    def beside(way: str, clients: Clients, small: int, large: int, shares: str) -> None:
        for name, pair in (("alone", (Load(), None)), (f"beside batches of {LARGE}", (Load(), Load(LARGE)))):
            loads: list[Load | None] = [None] * len(clients)
            loads[small], loads[large] = pair
            reading = clients.serve(loads)
            ordered = reading.served if small < large else reading.served[::-1]
            first = Reading(reading.seconds, ordered[:1])
            row = {"way": way, "shares": shares, "neighbour": name, **summary(first), "correct": True}
            rest = Reading(reading.seconds, ordered[1:])
            neighbours.append({**row, "neighbours_images_per_second": rest.images_per_second})

    with Clients([{}] * 2, NETWORK) as clients:
        beside("time slices", clients, 0, 1, "")
    with mps.daemon() as mps_daemon:
        percentages = (*PERCENTAGES, 100, 50, 90)
        environments = [
            {**mps_daemon.environment, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(percent)} for percent in percentages
        ]
        with Clients(environments, NETWORK) as clients:
            for number, percent in enumerate(PERCENTAGES):
                loads = [None] * number + [Load(LARGE)]
                alone.append({"percentage": percent, **summary(clients.serve(loads)), "correct": True})
            for small, large in ((0, 5), (2, 6), (4, 7)):
                beside("MPS", clients, small, large, f"{percentages[small]} % and {percentages[large]} %")
    return {**_about(NETWORK), "large_batch": LARGE, "alone": alone, "neighbours": neighbours}


def faults() -> dict[str, Any]:
    """Let two clients serve while a third makes an illegal access, or is killed in the middle of its work: who goes on.

    What a kill does under MPS is one outcome of an undefined one: its documentation ("Client Early Termination") has
    clients ended by `terminate_client`, since a signal may leave the server hanging.

    `answered`: requests of the two in the window, in whose middle it happens; `errors`: theirs; `afterwards`: whether
    a new client can serve after an illegal access.
    """
    timing.cupy_on_gpu()
    rows = []
    for way in ("time slices", "MPS"):
        for event in ("illegal access", "killed"):
            with mps.daemon() if way == "MPS" else contextlib.nullcontext() as mps_daemon:
                rows.append(_fault(way, event, mps_daemon.environment if mps_daemon else {}))
    return {"rows": rows}


def _fault(way: str, event: str, environment: dict[str, str]) -> dict[str, Any]:
    with Clients([environment] * 3, NETWORK) as clients:
        if event == "killed":
            reading = clients.attempt([Load()] * 3, meanwhile=lambda: clients.kill(0))
            own, others = reading.served[0].error, reading.served[1:]
        else:
            reading = clients.attempt([None, Load(), Load()], meanwhile=lambda: clients.fault(0))
            own, others = clients.last_answer(0), reading.served
    row = {
        "way": way,
        "event": event,
        "own_error": _first_line(own),
        "answered": [one.answered for one in others],
        "errors": [_first_line(one.error) for one in others],
    }
    print(f"  {way}, {event}: {row['errors']}", flush=True)
    if event == "killed":
        return row
    try:
        with Clients([environment], NETWORK) as clients:
            clients.serve([Load()], 0.1)
        return {**row, "afterwards": "serves"}
    except RuntimeError as error:
        return {**row, "afterwards": _first_line(str(error))}


def _first_line(error: str) -> str:
    return error.partition("\n")[0].removesuffix("; it wrote:")


def client_limit() -> dict[str, Any]:
    """Count how many of ASKED_FOR processes get a context from one MPS server, and what the others are told."""
    timing.cupy_on_gpu()
    command = module("kernels.serving.overlap.sharing.bare_client")
    options: dict[str, Any] = {"cwd": COURSE, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with mps.daemon() as mps_daemon, contextlib.ExitStack() as started:
        options["env"] = {**os.environ, **mps_daemon.environment}
        begun = time.monotonic()
        processes = [started.enter_context(subprocess.Popen(command, **options)) for _ in range(ASKED_FOR)]
        for one in processes:
            started.callback(one.kill)  # what has not ended, and then no context waits for it
            started.callback(one.wait, 30)
        for one in processes:
            started.callback(one.stdin.close)  # of all first, so that they end at the same time
        answers = [json.loads(one.stdout.readline())["error"] for one in processes]
        seconds, connected = time.monotonic() - begun, mps_daemon.clients()
    errors = {name: answers.count(name) for name in sorted(set(answers)) if name}
    return {
        "asked_for": ASKED_FOR,
        "accepted": answers.count(""),
        "connected": connected,
        "errors": errors,
        "start_seconds": seconds,
    }


def _about(network: SmallNetwork) -> dict[str, Any]:
    return {
        "layers": network.layers,
        "channels": network.channels,
        "size": network.size,
        "flop_per_image": network.flop,
        "blocks": network.blocks,
    }


def _row(way: str, reading: Reading, k: int, batch: int) -> dict[str, Any]:
    found = {"way": way, "clients": k, "batch": batch, **summary(reading), "correct": True}
    print(f"  {way}, {k} in flight, batch {batch}: {found['images_per_second']:.0f} images/s", flush=True)
    return found


# --- Tables ---------------------------------------------------------------------------------------------------------


LATENCIES = {"images/s": "images_per_second", "p50, µs": "p50_seconds", "p99, µs": "p99_seconds"}


def _ways_text(value: dict[str, Any]) -> str:
    first = rate(value, "time slices", 1, 1)
    columns = {"shared by": "way", "in flight": "clients", "batch": "batch", **LATENCIES}
    columns |= {"× one process": lambda row: row["images_per_second"] / first}
    return Table.of_rows("Requests to a small network, {blocks} blocks a launch", columns).text(value)


def _ways_summary(value: dict[str, Any]) -> dict[str, Any]:
    first = rate(value, "time slices", 1, 1)
    known = dict.fromkeys(row["way"] for row in value["rows"])
    return {way: rate(value, way, max(CLIENTS), 1) / first for way in known}


def rate(value: dict[str, Any], way: str, clients: int, batch: int) -> float:
    """Return images per second of a row of "sharing_ways". KeyError where there is none."""
    for row in value["rows"]:
        if (row["way"], row["clients"], row["batch"]) == (way, clients, batch):
            return row["images_per_second"]
    raise KeyError(f"no row for {way}, {clients} clients, batch {batch}")


def _parts_text(value: dict[str, Any]) -> str:
    alone = Table.of_rows(
        "Batches of {large_batch} in a part of the GPU", {"% of threads": "percentage", **LATENCIES}, rows="alone"
    )
    columns = {"shared by": "way", "shares": "shares", "neighbour": "neighbour", **LATENCIES}
    columns |= {"neighbour's images/s": "neighbours_images_per_second"}
    return alone.text(value) + "\n" + Table.of_rows("", columns, rows="neighbours").text(value)


def _limit_text(value: dict[str, Any]) -> str:
    told = ", ".join(f"{count} × {name}" for name, count in value["errors"].items()) or "no errors"
    return f"{value['asked_for']} clients asked one MPS server for a context: {value['accepted']} got it; {told}"


MEASUREMENTS: dict[str, Callable[[], Any]] = {
    "sharing_ways": ways,
    "sharing_batches": batches,
    "sharing_saturated": saturated,
    "sharing_parts": parts,
    "sharing_faults": faults,
    "mps_clients": client_limit,
}
TABLES = {
    "sharing_ways": Table(_ways_text, _ways_summary),
    "sharing_batches": Table.of_rows("One process, one request in flight", {"batch": "batch", **LATENCIES}),
    "sharing_saturated": Table.of_rows(
        "Batch 1, MPS with {mps_clients} clients", {"shared by": "way", "in flight": "clients", **LATENCIES}
    ),
    "sharing_parts": Table(_parts_text),
    "sharing_faults": Table.of_rows(
        "An error in one of three clients",
        {"shared by": "way", "one client": "event", "is told": "own_error"}
        | {"the other two": lambda row: "; ".join(filter(None, row["errors"])) or "go on", "answered": "answered"}
        | {"a new client": lambda row: row.get("afterwards", "")},
    ),
    "mps_clients": Table(_limit_text),
}

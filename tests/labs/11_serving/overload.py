"""A service beyond what it can take, measured: where its engine is the limit, and where its front is.

    python -m tests.labs.11_serving.overload [--seconds 8] [--only front] [--table]     the table of operating.md

The engine takes 20 ms per request, one at a time. Clients come at even intervals, each with a connection of its own,
and wait for no other. Latency counts from the moment that a client was due. What the service's process used is
processor time, which other work on the machine changes little; shares and latencies are of this machine at this load.
"""

import argparse
import asyncio
import importlib
import json
import os
import platform
import time
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

import psutil

from kernels.serving.serve.service.process import start
from warpcourse.bench.timing import host

asking = importlib.import_module("tests.labs.11_serving.asking")

ENGINE_SECONDS, PATIENCE = 0.02, 60.0
# What is the limit: requests per second, and numbers in each. With many of them the front has more to do per request
# than a client, or the clients, who share the machine, would be the limit. Of small requests it takes more of both.
KINDS = {"engine": (200, 2), "front": (800, 5000), "front, small requests": (2000, 2)}


def request(numbers: int) -> bytes:
    body = json.dumps({"instances": [[number / 7 for number in range(numbers)]]}).encode()
    head = "POST /v1/predict HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def one(host: str, port: int, message: bytes, due: float) -> tuple[str, float, float]:
    """Return what a client got, the seconds since it was due, and how many it was late."""
    late = time.perf_counter() - due
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(message)
            answer = await reader.read()
            writer.close()
        status = answer.split(b" ", 2)[1].decode() if answer else "closed"
    except OSError as error:  # TimeoutError is one
        status = type(error).__name__
    return status, time.perf_counter() - due, late


async def clients(url: str, message: bytes, rate: float, seconds: float) -> list[tuple[str, float, float]]:
    host, _, port = url.removeprefix("http://").rpartition(":")
    begin, tasks = time.perf_counter(), []
    for number in range(round(rate * seconds)):
        due = begin + number / rate
        if (early := due - time.perf_counter()) > 0:
            await asyncio.sleep(early)
        tasks.append(asyncio.create_task(one(host, int(port), message, due)))
    return await asyncio.gather(*tasks)


def processor_seconds(process: psutil.Process) -> float:
    """Return what a process has used, and those that it started: bodies are parsed in one of its own."""
    return sum(sum(one.cpu_times()[:2]) for one in (process, *process.children(recursive=True)))


def overflows() -> int:
    """Return how often a connection of this machine found no place to wait to be accepted in; 0 where nothing tells."""
    told = Path("/proc/net/netstat")
    lines = told.read_text().splitlines() if told.exists() else []
    rows = [line.split() for line in lines if line.startswith("TcpExt:")]
    return int(dict(zip(*rows, strict=True)).get("ListenOverflows", 0)) if rows else 0


def overload(rate: float, numbers: int, seconds: float) -> dict:
    """Return what became of the requests, and what it took."""
    limits = {"batch_limit": 1, "capacity": 16, "wait_limit": 0.0}
    with start(
        "serving_engines:Slow",
        environment=asking.HERE,
        options={"seconds": ENGINE_SECONDS, "numbers": numbers},
        **limits,
    ) as service:
        process = psutil.Process(service.pid)
        service.ask([[0.0] * numbers])  # the first large body starts the process that parses them
        before, begin, dropped = processor_seconds(process), time.perf_counter(), overflows()
        own = time.process_time()
        found = asyncio.run(clients(service.url, request(numbers), rate, seconds))
        own, took, used = time.process_time() - own, time.perf_counter() - begin, processor_seconds(process) - before
        memory, counts = process.memory_info().rss >> 20, service.stop()
    by_status = defaultdict(list)
    for status, latency, _ in found:
        by_status[status].append(latency)
    return {
        "offered_per_second": rate,
        "requests": len(found),
        "took_seconds": round(took, 1),
        "statuses": {status: len(latencies) for status, latencies in sorted(by_status.items())},
        "p50_seconds": {status: round(sorted(all_)[len(all_) // 2], 3) for status, all_ in sorted(by_status.items())},
        "p99_seconds": {
            status: round(sorted(all_)[len(all_) * 99 // 100], 3) for status, all_ in sorted(by_status.items())
        },
        "share_of_the_engine": round(len(by_status["200"]) * ENGINE_SECONDS / took, 3),
        "processor_ms_per_request": round(1e3 * used / len(found), 3),
        "clients_ms_per_request": round(1e3 * own / len(found), 3),
        "processors": round(used / took, 2),
        "late_p99_seconds": round(sorted(late for *_, late in found)[len(found) * 99 // 100], 3),
        "memory_mb": memory,
        "found_no_place": overflows() - dropped,
        "accepted": counts["accepted"] - 1,
        "answered": counts["answered"] - 1,
    }


def row(kind: str, found: dict) -> str:
    """Return a line of the table "Beyond what it can take" in kernels/serving/operating.md."""
    rate, numbers = KINDS[kind]
    refused = [status for status in found["statuses"] if status != "200"]
    away = "; ".join(f"{found['statuses'][status]:,} × {status}" for status in refused)
    after = "; ".join(
        f"{1e3 * found['p50_seconds'][status]:.0f}, {1e3 * found['p99_seconds'][status]:.0f} ms" for status in refused
    )
    cells = f"{rate:,}/s of {numbers:,} numbers: {kind}", f"{found['statuses'].get('200', 0)} of {found['requests']:,}"
    cells += away, after, f"{found['share_of_the_engine']:.0%}", f"{found['processor_ms_per_request']:.2f} ms"
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--table", action="store_true", help="a line of Markdown instead of JSON")
    given = parser.parse_args()
    about = {"cpu": host()["cpu"], "cores": host()["cores"], "date": time.strftime("%Y-%m-%d", time.gmtime())}
    about |= {"python": platform.python_version()} | {name: version(name) for name in ("uvicorn", "fastapi")}
    for kind in (given.only,) if given.only else KINDS:
        load = round(os.getloadavg()[0], 1)
        found = overload(*KINDS[kind], given.seconds)
        told = json.dumps({"limit": kind, **found, "load_before": load, **about})
        print(row(kind, found) if given.table else told, flush=True)


if __name__ == "__main__":
    main()

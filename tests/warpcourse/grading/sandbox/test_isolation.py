"""The sandbox: a kernel works in it, and what a student tries against it fails.

Run as root, these tests run themselves once more as an ordinary user.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import re
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat.v4 import new_code_cell, new_notebook

from tests.support.waiting import HANG, until
from warpcourse.grading.sandbox import isolation as sandboxes
from warpcourse.grading.sandbox import linux, users, zygote
from warpcourse.grading.sandbox.child import Place
from warpcourse.grading.sandbox.isolation import Bubblewrap, LimitsOnly
from warpcourse.grading.sandbox.kernel_manager import SandboxedKernelManager, Zygotes
from warpcourse.grading.sandbox.limits import SubmissionLimits
from warpcourse.grading.sandbox.preflight import preflight
from warpcourse.grading.sandbox.relay import Counter, Excess
from warpcourse.grading.sandbox.zygote import send
from warpcourse.grading.sandbox.zygote_client import SandboxError
from warpcourse.paths import COURSE
from warpcourse.processes.tree import SOCKET_BYTES, descendants, is_running, processes, threads, waited_seconds

REQUIRED = os.environ.get("WARPLAB_REQUIRE_SANDBOX") == "1"
ROOT = os.geteuid() == 0
# Wide enough for a busy machine where time is not what is tested.
TIMES = {"wall_seconds": HANG, "cpu_seconds": 60}
LIMITS = SubmissionLimits(**TIMES, memory_bytes=1 << 30, file_bytes=1 << 20, disk_bytes=8 << 20)


NESTED = pytest.param("nested", marks=pytest.mark.sandbox)
ONCE = pytest.param("once", marks=pytest.mark.sandbox)


def sandbox_of(isolation: str):
    if isolation == "limits":
        return LimitsOnly()
    program = shutil.which("bwrap")
    problem = "bwrap is not installed" if program is None else sandboxes.try_out(Bubblewrap(program, isolation))
    if problem and REQUIRED:
        pytest.fail(f"WARPLAB_REQUIRE_SANDBOX is set, but {problem}")
    if problem:
        pytest.skip(problem)
    return Bubblewrap(program, isolation)


@pytest.fixture(scope="module")
def zygotes_in():
    """Return the zygotes in a kind of isolation, the same for all tests."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def zygotes_in(isolation: str) -> Zygotes:
            return stack.enter_context(Zygotes(sandbox_of(isolation), warmth="kernel"))

        yield zygotes_in


@pytest.fixture(params=[NESTED, ONCE, "limits"])
def everywhere(request, zygotes_in):
    return zygotes_in(request.param)


@pytest.fixture(params=[NESTED, "limits"])
def anywhere(request, zygotes_in):
    """A bubblewrap per submission is left out: it treats a submission as limits alone do, only slower."""
    return zygotes_in(request.param)


@pytest.fixture(params=[NESTED, ONCE])
def boxed(request, zygotes_in):
    """Bubblewrap only."""
    return zygotes_in(request.param)


@pytest.fixture(params=[NESTED])
def nested(request, zygotes_in):
    return zygotes_in(request.param)


def run(zygotes: Zygotes, *cells: str, limits: SubmissionLimits = LIMITS, files=None):
    """Return the outputs of the cells, one text per cell, and why the kernel ended, if it did. No process is left."""
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    with SandboxedKernelManager(zygotes, files=files, limits=limits) as manager:
        client = NotebookClient(notebook, km=manager, allow_errors=True, timeout=HANG)
        with contextlib.suppress(DeadKernelError):
            client.execute()
        ended = manager.ended
    texts = []
    for cell in notebook.cells:
        parts = (o.get("text") or o.get("evalue") or o.get("data", {}).get("text/plain", "") for o in cell.outputs)
        texts.append("".join(parts).strip())
    return texts, ended


@contextlib.contextmanager
def busy_kernel(zygotes: Zygotes, code: str, limits: SubmissionLimits = LIMITS):
    """Start a kernel and send it `code`, without waiting for the result."""
    with SandboxedKernelManager(zygotes, limits=limits) as manager:
        client = NotebookClient(new_notebook(), km=manager)
        client.start_new_kernel()
        channels = manager.client()
        channels.start_channels()
        try:
            channels.execute(code)
            yield manager
        finally:
            channels.stop_channels()


def until_in(manager: SandboxedKernelManager, condition, what: str) -> None:
    """Wait for what a kernel that runs is to bring about. Raises AssertionError at once if the kernel ends first."""

    def happened():
        if condition():
            return True
        ended = manager.ended
        if ended is None:
            return False
        assert condition(), f"the kernel ended before {what}: {ended}"
        return True

    until(happened, what)


def until_ended(zygotes: Zygotes, code: str, limits: SubmissionLimits = LIMITS):
    """Send `code` to a kernel and return why it ended."""
    with busy_kernel(zygotes, code, limits) as manager:
        until(lambda: manager.ended is not None)
        return manager.ended


def processes_with(marker: str) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                if marker.encode() in Path(f"/proc/{entry}/cmdline").read_bytes():
                    found.append(int(entry))
    return found


# What works


def test_a_notebook_runs(everywhere):
    texts, ended = run(
        everywhere,
        "open('a/data.csv').read()",
        "import numpy as np\nint(np.arange(3).sum())",
        # Captured, as what it prints itself reaches the page by another way than the result, in any order.
        "import subprocess\nsubprocess.run(['echo', 'from a process'], capture_output=True, text=True).stdout",
        "from multiprocessing import get_context\nwith get_context('fork').Pool(2) as p: print(p.map(abs, [-1]))",
        "1 / 0",
        files={"a/data.csv": b"1,2"},
    )
    assert ended is None
    assert texts == ["'1,2'", "3", r"'from a process\n'", "[1]", "division by zero"]


@pytest.mark.sandbox
def test_children_of_a_warmed_zygote_have_the_magic_and_inline_figures(zygotes):
    texts, _ = run(
        zygotes,
        "import sys, numpy as np\nprint('numba.cuda' in sys.modules, np.random.get_state()[1][:4].tolist())",
        "from warplab import cuda, cp\n@cuda.jit\ndef fill(x):\n    x[cuda.grid(1)] = 3\n"
        "x = cp.zeros(4, np.float32)\nfill[1, 4](x)\nx.get().tolist()",
        "%%cuda\n__global__ void nothing() {}",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2]);",
    )
    again, _ = run(zygotes, "import numpy as np\nprint(True, np.random.get_state()[1][:4].tolist())")
    # The simulator's device memory was reserved before the fork, so the limit of address space does not count it.
    tight = SubmissionLimits(memory_bytes=512 << 20, wall_seconds=HANG)
    filled = until_ended(zygotes, "from warplab import cp\nx = cp.full(1 << 28, 1.0)", tight)
    assert zygotes.take(LIMITS).warm_seconds > 0
    assert filled.reason == "memory"
    assert texts[0].startswith("True [")
    assert texts[0] != again[0], "two submissions draw the same random numbers"
    assert texts[1] == "[3.0, 3.0, 3.0, 3.0]"
    assert texts[2] == ""
    assert "Figure" in texts[3]


def test_interrupt_ends_a_cell_and_the_kernel_goes_on(anywhere):
    with SandboxedKernelManager(anywhere, limits=LIMITS) as manager:
        notebook = new_notebook(cells=[new_code_cell("while True: pass"), new_code_cell("'alive'")])
        client = NotebookClient(notebook, km=manager, allow_errors=True, interrupt_on_timeout=True)
        client.timeout_func = lambda cell: 1 if "while" in cell.source else HANG
        client.execute()
        assert notebook.cells[0].outputs[-1].ename == "KeyboardInterrupt"
        assert notebook.cells[1].outputs[-1].data["text/plain"] == "'alive'"


def test_an_interrupt_costs_no_reply_whenever_it_strikes(anywhere):
    draw = random.Random(1)
    with SandboxedKernelManager(anywhere, limits=LIMITS) as manager:
        run_sync(manager.start_kernel)()
        client = manager.client()
        client.start_channels()
        run_sync(client.wait_for_ready)(timeout=HANG)
        for _ in range(100):
            asked = client.execute("", silent=True, user_expressions={"answer": "None"})
            time.sleep(draw.uniform(0, 0.006))  # while the kernel reads, runs or replies
            run_sync(manager.interrupt_kernel)()
            reply = run_sync(client.get_shell_msg)(timeout=HANG)
            assert reply["parent_header"]["msg_id"] == asked
        assert manager.ended is None


def test_the_next_submission_finds_nothing_of_the_one_before(anywhere):
    marker = secrets.token_hex(8)
    plant = f"""
import os
for folder in (os.environ['HOME'], os.environ['TMPDIR'], '.', '/dev/shm', '/tmp'):
    try: open(os.path.join(folder, 'left-{marker}'), 'w').write('{marker}')
    except OSError: pass
"""
    if anywhere.sandbox.isolation == "limits":
        plant = plant.replace(", '/dev/shm', '/tmp'", "")
    run(anywhere, plant, files={f"{marker}.txt": marker.encode()})
    texts, _ = run(
        anywhere,
        f"""
import os
found = [os.path.join(at, name) for top in (os.environ['TMPDIR'], '/dev/shm', '/tmp')
         for at, _, names in os.walk(top) for name in names if '{marker[:8]}' + '{marker[8:]}' in name]
# Its own memory too: what the zygote read for the one before would still be there.
wanted = ('{marker[:8]}').encode() + ('{marker[8:]}').encode()
hits = 0
with open('/proc/self/maps') as maps, open('/proc/self/mem', 'rb') as memory:
    for line in maps:
        span, access = line.split()[:2]
        first, last = (int(end, 16) for end in span.split('-'))
        if 'rw' in access and last - first < 1 << 28:
            memory.seek(first)
            try: hits += memory.read(last - first).count(wanted)
            except OSError: pass
print(found, hits)
""",
    )
    # Of itself it finds `wanted` and what the memory was read into.
    found, hits = texts[0].rsplit(" ", 1)
    assert found == "[]"
    assert int(hits) <= 3


def test_a_judge_keeps_nothing_open_of_the_submissions_before(nested):
    def held():
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    run(nested, "1")
    before = held()
    for _ in range(3):
        run(nested, "1")
    assert held() == before


# Promises, tried from the inside


def test_preflight_holds_with_bubblewrap(boxed):
    findings = preflight(boxed.sandbox)
    assert len(findings) == 11
    assert [str(finding) for finding in findings if not finding.holds] == []


def test_preflight_tells_what_limits_alone_do_not_protect():
    findings = {finding.promise: finding for finding in preflight(LimitsOnly("no bwrap"))}
    for promise in ("file size limited", "memory limited", "processes limited", "environment empty"):
        assert findings[promise].holds, findings[promise]
    for promise in ("no network", "sees only its own files", "no other processes visible"):
        assert not findings[promise].holds, findings[promise]
    text = LimitsOnly("bubblewrap is not installed").describe()
    assert "NOT SANDBOXED (bubblewrap is not installed)" in text
    assert "gradebook" in text


def test_without_bubblewrap_find_says_so(monkeypatch):
    monkeypatch.delenv(sandboxes.SWITCH, raising=False)
    monkeypatch.setattr(sandboxes.shutil, "which", lambda _: None)
    found = sandboxes.find.__wrapped__()
    assert isinstance(found, LimitsOnly)
    assert "not installed" in found.describe()


def test_bubblewrap_can_be_switched_off(monkeypatch):
    monkeypatch.setenv(sandboxes.SWITCH, "limits")
    found = sandboxes.find.__wrapped__()
    assert isinstance(found, LimitsOnly)
    assert "NOT SANDBOXED (WARPLAB_SANDBOX=limits switches bubblewrap off)" in found.describe()


@pytest.mark.sandbox
def test_where_inner_namespaces_are_refused_each_submission_gets_a_bubblewrap(monkeypatch, tmp_path):
    """As on a system whose security module lets bubblewrap, and nothing inside it, make namespaces."""
    sandbox_of("once")
    program = shutil.which("bwrap")
    wrapper = tmp_path / "bwrap"
    # For root bubblewrap has no option for it.
    refuse = 'for a in "$@"; do [ "$a" = nested ] && exit 1; done' if ROOT else 'set -- --disable-userns "$@"'
    wrapper.write_text(f'#!/bin/sh\n{refuse}\nexec {program} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setattr(sandboxes.shutil, "which", lambda _: str(wrapper))
    found = sandboxes.find.__wrapped__()
    assert (found.kind, found.isolation) == ("bubblewrap", "once")


# Attacks


def test_exit_and_signals_end_the_kernel_with_a_reason(anywhere):
    ended = until_ended(anywhere, "import os; os._exit(3)")
    assert (ended.reason, ended.code, ended.is_limit) == ("exit", 3, False)
    ended = until_ended(anywhere, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert (ended.reason, ended.code) == ("exit", -9)
    assert "SIGKILL" in ended.text


def test_killing_its_parents_harms_only_itself(everywhere):
    """With inner namespaces nothing else can be killed or stopped. Elsewhere init, or even the zygote: its own loss."""
    # Under limits alone, not whatever the tests' user has.
    pids = "[os.getppid()]" if everywhere.sandbox.isolation == "limits" else "map(int, filter(str.isdigit, listing))"
    ended = until_ended(
        everywhere,
        f"""
import os, signal
listing = os.listdir('/proc')
for pid in {pids}:
    for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL):
        if pid != os.getpid():
            try: os.kill(pid, number)
            except OSError: pass
os._exit(5)
""",
    )
    assert ended.reason == "exit"
    assert ended.code == 5 or everywhere.sandbox.isolation != "nested"
    assert run(everywhere, "'next'")[0] == ["'next'"]


def test_inner_init_survives_signals(nested):
    texts, ended = run(
        nested,
        "import os, signal\n"
        "for number in set(signal.Signals) - {signal.SIGUSR1}:\n    os.kill(1, number)\nos.getppid()",
        "import ctypes\n[ctypes.CDLL(None).ptrace(16, 1, 0, 0), open('/proc/1/status').read().count('zombie')]",
    )
    assert (texts[0], texts[1], ended) == ("1", "[-1, 0]", None)


def sleeper(marker: str) -> str:
    """An expression: the command of a process that sleeps and shows the marker."""
    return f"[sys.executable, '-S', '-c', 'import time; time.sleep(600)', '{marker}']"


def processes_named(*names: str) -> list[int]:
    """Return the processes of one of these names, of at most 15 characters. Forks inherit a name."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{entry}/comm").read_text(errors="replace").strip() in names:
                    found.append(int(entry))
    return found


def test_no_process_survives(everywhere):
    """Daemons, also twice forked and in sessions of their own, then a fork bomb."""
    marker = f"warplab-{secrets.token_hex(8)}"
    growing, refused = f"{marker[-12:]}+", f"{marker[-12:]}-"
    bomb = f"""
import os, subprocess, sys, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            os.execv(sys.executable, {sleeper(marker)})
        os._exit(0)
for _ in range(5): subprocess.Popen({sleeper(marker)})
time.sleep(0.2)
def call_oneself(name):
    with open('/proc/self/comm', 'w') as file: file.write(name)
call_oneself({growing!r})
while True:
    try: os.fork()
    except OSError: call_oneself({refused!r})
"""
    with busy_kernel(everywhere, bomb) as manager:
        until_in(manager, lambda: len(processes_with(marker)) == 8, "there were 8 daemons")
        # Not until there are so many: Linux counts what other graders of an ordinary user run towards the same limit.
        until_in(manager, lambda: processes_named(refused), "the bomb was refused a process")
        assert len(processes_named(growing, refused)) > 1
    assert processes_with(marker) == processes_named(growing, refused) == []
    assert run(everywhere, "'next'")[0] == ["'next'"]


def test_a_daemon_does_not_outlive_a_kernel_that_exits(anywhere):
    marker = f"warplab-{secrets.token_hex(8)}"
    ended = until_ended(
        anywhere,
        f"""
import os, signal, sys
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.execv(sys.executable, {sleeper(marker)})
    os._exit(0)
os.close(writing)
os.read(reading, 1)  # until the daemon runs the other program, which has no pipe
os._exit(0)
""",
    )
    assert ended.reason == "exit"
    assert processes_with(marker) == []


@pytest.mark.parametrize("isolation", [NESTED, "limits"])
def test_nothing_outlives_a_judge_that_is_killed(isolation):
    sandbox_of(isolation)
    marker = f"warplab-{secrets.token_hex(8)}"
    script = f"""
import time
from tests.warpcourse.grading.sandbox.test_isolation import *
code = "import subprocess, sys; subprocess.Popen({sleeper(marker)})"
with busy_kernel(Zygotes(sandbox_of("{isolation}"), warmth="kernel"), code):
    time.sleep({HANG})
"""
    judge = subprocess.Popen([sys.executable, "-c", script], cwd=COURSE, stderr=subprocess.DEVNULL)
    try:
        until(lambda: judge.poll() is not None or len(set(processes_with(marker)) - {judge.pid}) == 1)
        assert judge.poll() is None
    finally:
        judge.kill()
        judge.wait()
    until(lambda: processes_with(marker) == [])


@pytest.mark.skipif(not ROOT, reason="needs root")
def test_a_pooled_user_is_cleared_before_it_is_used_again():
    with users.pooled_user() as user:
        left = subprocess.Popen(["sleep", "60"], user=user, group=user, extra_groups=[])
    assert left.wait(timeout=HANG) == -9


def test_no_process_is_left_of_a_killed_zygote(anywhere):
    with busy_kernel(anywhere, "import time\ntime.sleep(3600)") as manager:
        zygote = manager.provisioner.zygote
        left = descendants(zygote.pid, processes())
        assert left
        os.kill(zygote.pid, signal.SIGKILL)
        until(lambda: not any(is_running(pid) for pid in left))


def test_no_process_is_left_of_a_judge_that_ends_before_it_has_its_answer(anywhere):
    with busy_kernel(anywhere, "import time\ntime.sleep(3600)") as manager:
        zygote = manager.provisioner.zygote
        left = [zygote.pid, *descendants(zygote.pid, processes())]
        assert len(left) > 1
        os.kill(zygote.pid, signal.SIGSTOP)  # it will find a question, and nobody who waits for the answer
        send(zygote._channel, {"op": "status"})
        zygote._channel.shutdown(socket.SHUT_RDWR)
        os.kill(zygote.pid, signal.SIGCONT)
        until(lambda: not any(is_running(pid) for pid in left))


def test_a_killed_zygote_is_replaced(nested):
    with busy_kernel(nested, "pass") as manager:
        os.kill(manager.provisioner.zygote.pid, 9)
        until(lambda: manager.ended is not None)
        assert manager.ended.reason == "lost"
    assert run(nested, "'next'")[0] == ["'next'"]


def test_memory_is_limited(anywhere):
    texts, ended = run(anywhere, "x = bytearray(100 << 30)", "'alive'")
    assert (texts, ended) == (["", "'alive'"], None)
    # Through several processes, none of which takes more than it may by itself.
    ended = until_ended(
        anywhere,
        """
import os, time
for _ in range(8):
    if os.fork() == 0:
        x = bytearray(os.urandom(1 << 20)) * 256
        time.sleep(600)
time.sleep(600)
""",
    )
    assert ended.reason == "memory"
    assert ended.is_limit
    assert "1024 MiB" in ended.text


def test_pages_that_processes_share_count_once_also_beside_sockets(boxed):
    """Each of the two stays below the limit: the pages counted once per process, and the sockets. The sum does not."""
    texts, ended = run(
        boxed,
        """
import os, socket, time
shared = os.urandom(1 << 20) * 100
reading, writing = os.pipe()
pids = [os.getpid()]
for _ in range(5):
    pids.append(os.fork())
    if pids[-1] == 0:
        kept = [socket.socket() for _ in range(140)]
        os.write(writing, b'x')
        time.sleep(600)
kept = [socket.socket() for _ in range(140)]
for _ in range(5): os.read(reading, 1)
pages = sum(int(open(f'/proc/{pid}/statm').read().split()[1]) for pid in pids)
print(pages * os.sysconf('SC_PAGE_SIZE'), open('/proc/net/sockstat').readline().split()[2])
""",
    )
    # The zygote has looked again before it answered whether the kernel still runs.
    assert ended is None, ended
    resident, sockets = map(int, texts[0].split())
    assert resident < LIMITS.memory_bytes < resident + SOCKET_BYTES * sockets


def test_processor_time_is_limited_over_the_whole_tree(anywhere):
    limits = SubmissionLimits(cpu_seconds=1, wall_seconds=HANG)
    ended = until_ended(anywhere, "import os; os.fork(); os.fork()\nwhile True: pass", limits)
    assert ended.reason == "cpu"
    assert "1 seconds of processor time" in ended.text


def test_wall_time_is_limited_also_for_a_kernel_that_stops_itself(anywhere):
    limits = SubmissionLimits(wall_seconds=5)
    ended = until_ended(
        anywhere,
        "import os, signal\nfor n in (signal.SIGINT, signal.SIGTERM): signal.signal(n, signal.SIG_IGN)\n"
        "os.kill(os.getpid(), signal.SIGSTOP)",
        limits,
    )
    assert ended.reason == "wall"
    assert "5 seconds in all" in ended.text


def test_disk_is_limited(boxed):
    texts, ended = run(
        boxed,
        """
import os, errno
total, errors = 0, set()
for top in ('/tmp', '/dev/shm', os.getcwd(), os.environ['HOME'], '/dev/mqueue', '/var/tmp', '/run'):
    for number in range(64):
        try:
            with open(f'{top}/{number}', 'wb') as file: total += file.write(bytes(1 << 19))
        except OSError as error: errors.add(errno.errorcode[error.errno])
print(total <= 8 << 20, 'ENOSPC' in errors)
for number in range(30001):
    try: os.mkdir(f'/tmp/d{number}')
    except OSError: break
print(number < 30000)  # bubblewrap's own tmpfs has no limit of files
""",
        "'alive'",
    )
    assert texts[0].split() == ["True", "True", str(boxed.sandbox.isolation == "nested")]
    assert (texts[1], ended) == ("'alive'", None)


def test_a_flood_of_output_is_stopped(nested):
    limits = SubmissionLimits(traffic_bytes=4 << 20, wall_seconds=HANG)
    ended = until_ended(nested, "while True: print('x' * 100000)", limits)
    assert ended.reason == "output"
    assert "4 MiB" in ended.text


RAW = """
import os, socket, struct
# The connections that ZeroMQ has accepted, written to behind its back.
for entry in os.listdir('/proc/self/fd'):
    try:
        sock = socket.socket(fileno=os.dup(int(entry)))
        listens = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        if listens or 'kernel-' not in str(sock.getsockname()): continue
        sock.setblocking(True)
        while True: sock.sendall(PART)
    except OSError: pass
"""


@pytest.mark.parametrize(
    "part",
    [b"\x01\x00", b"\x03" + struct.pack(">Q", 1 << 62), os.urandom(1 << 16)],
    ids=["endless message", "huge frame", "noise"],
)
def test_what_is_no_message_is_stopped(nested, part):
    limits = SubmissionLimits(traffic_bytes=16 << 20, wall_seconds=HANG)
    before = _resident()
    ended = until_ended(nested, RAW.replace("PART", f"bytes.fromhex({part.hex()!r})*999"), limits)
    assert ended.reason == "output"
    assert _resident() - before < 100 << 20


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_counter_of_the_relay_follows_frames_cut_anywhere():
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(64 - 16)
    ready = b"\x04\x05ready"
    long = b"\x02" + struct.pack(">Q", 300) + bytes(300)
    stream = greeting + ready + b"\x01\x03abc" + b"\x00\x00" + long
    for step in (1, 2, 7, len(stream)):
        spent = []
        counter = Counter(1000, spent.append)
        for at in range(0, len(stream), step):
            counter.feed(stream[at : at + step])
        assert spent == [128, 128, 128, 300]
    for bad in (b"\x00", b"\xff" + bytes(8) + b"\x7e", b"\xff" + bytes(8) + b"\x7f\x01"):
        with pytest.raises(Excess, match="ZMTP 3"):
            Counter(1000, spent.append).feed(bad + bytes(64))
    with pytest.raises(Excess, match="parts"):
        Counter(1 << 20, spent.append).feed(greeting + b"\x01\x00" * 1000)
    with pytest.raises(Excess, match="more than"):
        Counter(1000, spent.append).feed(greeting + b"\x03" + struct.pack(">Q", 1001))


def test_outside_is_out_of_reach(boxed, tmp_path, monkeypatch):
    """Files, environment and sockets of the judge; folders of sockets of others; packages; /proc tricks; keyrings."""
    canary = f"canary-{secrets.token_hex(8)}"
    monkeypatch.setenv("WARPLAB_GRADING_SEED", canary)
    tmp_path.chmod(0o777)
    (tmp_path / "secret").write_text(canary)
    other = socket.socket(socket.AF_UNIX)
    other.bind(str(tmp_path / "other"))
    other.listen()
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0{canary}")
    abstract.listen()
    course = sandboxes.COURSE
    # Where a home holds the course or its Python, the way to them is there and nothing else.
    bound = [Path(path).resolve() for path in (course, sys.prefix, sys.base_prefix)]
    on_the_way = {
        str(folder): sorted({path.relative_to(folder).parts[0] for path in bound if path.is_relative_to(folder)})
        for folder in (Path.home().resolve(), Path("/home"), Path("/root"))
    }
    texts, ended = run(
        boxed,
        f"""
import glob, os, socket
tried = []
def attempt(name, action):
    try: result = action()
    except Exception: return
    if result not in (None, False, [], b'', ''): tried.append((name, str(result)[:80]))
def connect(address):
    with socket.socket(socket.AF_UNIX) as s: s.connect(address); return True
def tcp(address):
    with socket.socket() as s: s.settimeout(2); s.connect(address); return True
attempt('file', lambda: open('{tmp_path}/secret').read())
attempt('folder', lambda: os.listdir('{tmp_path}'))
attempt('course', lambda: [p for p in ('{course}/solutions', '{course}/tests', '{course}/.git', '/course/solutions')
                           if os.path.exists(p)])
for folder, way in {on_the_way}.items():
    attempt(folder, lambda: [name for name in os.listdir(folder) if name not in way])
attempt('etc', lambda: open('/etc/shadow').read() + open('/etc/passwd').read())
attempt('other socket', lambda: connect('{tmp_path}/other'))
attempt('abstract', lambda: connect('\\0{canary}'))
attempt('judge sockets', lambda: glob.glob('/tmp/warplab-*'))
attempt('system sockets', lambda: glob.glob('/run/*') + glob.glob('/var/run/*'))
attempt('tcp', lambda: tcp(('127.0.0.1', 22)))
attempt('internet', lambda: tcp(('192.0.2.1', 80)))
attempt('environment', lambda: [v for v in os.environ.values() if 'canary' in v])
for pid in range(1, 60):
    for name in ('environ', 'cmdline', 'mem'):
        attempt(f'{{pid}}/{{name}}', lambda: '{canary[:9]}' + '{canary[9:]}' in open(f'/proc/{{pid}}/{{name}}').read())
    for link in ('root', 'cwd'):
        attempt(f'{{pid}}/{{link}}', lambda: os.listdir(f'/proc/{{pid}}/{{link}}{tmp_path}'))
attempt('sysctl', lambda: open('/proc/sys/kernel/core_pattern', 'w').write('x'))
attempt('sysrq', lambda: open('/proc/sysrq-trigger', 'w').write('x'))
attempt('keys', lambda: [key for key in open('/proc/keys') if '_ses: empty' not in key])  # its own, new one
import ctypes
libc = ctypes.CDLL(None)
for name, number, *arguments in (('keyctl', 250, 0, -3, 1), ('ptrace', 101, 16, 1), ('unshare', 272, 0x10000000),
        ('mount', 165, b'none', b'/tmp', b'tmpfs'), ('setns', 308, 0), ('memfd', 319, b'x', 0), ('bpf', 321, 0),
        ('shmget', 29, 0, 4096, 0o1600), ('io_uring', 425, 1, 0), ('inotify', 294, 0),
        ('io_setup', 206, 1, ctypes.byref(ctypes.c_ulong()))):
    attempt(name, lambda: libc.syscall(number, *arguments) >= 0)
import numpy, warplab
for package in (numpy.__file__, warplab.__file__, os.__file__):
    attempt(f'write {{package}}', lambda: open(package, 'a'))
    attempt(f'chmod {{package}}', lambda: os.chmod(package, 0o777) or 'done')
    attempt(f'plant {{package}}', lambda: open(os.path.dirname(package) + '/evil.py', 'w'))
for interpreter in (os.path.realpath(__import__('sys').executable), '/usr/bin/env'):
    attempt(f'write {{interpreter}}', lambda: open(interpreter, 'r+b'))
attempt('setuid', lambda: os.setuid(0) or 'done')
attempt('mknod', lambda: os.mknod('/tmp/disk', 0o60666, os.makedev(254, 0)) or open('/tmp/disk', 'rb').read(1))
attempt('links', lambda: os.link('/etc/ld.so.cache', '/tmp/hard') or 'done')
print(tried)
""",
    )
    other.close()
    abstract.close()
    assert (texts, ended) == (["[]"], None)


def test_sockets_have_no_folder_to_plant_symlinks_in(anywhere):
    """The kernel unlinks, replaces and closes what it can find of its sockets; the judge connects nowhere else."""
    with SandboxedKernelManager(anywhere, limits=LIMITS) as manager:
        client = NotebookClient(new_notebook(), km=manager, timeout=HANG)
        with client.setup_kernel():
            folder = Path(manager.ip).parent
            names = sorted(path.name for path in folder.iterdir())
            assert folder.stat().st_mode & 0o077 == 0
            cell = new_code_cell(f"import os\n[os.path.exists({str(folder)!r}), os.access({str(folder)!r}, os.W_OK)]")
            client.nb.cells.append(cell)
            client.execute_cell(cell, 0)
            seen = cell.outputs[0].data["text/plain"]
            assert sorted(path.name for path in folder.iterdir()) == names
        if anywhere.sandbox.isolation != "limits":
            assert seen == "[False, False]"
        elif ROOT:
            assert seen.endswith("False]")
    assert not folder.exists()


def test_files_of_a_submission_stay_in_their_folder(nested):
    zygote = nested.take(LIMITS)
    for name in ("/etc/passwd", "../x", "a/../../x", "", "a\0b"):
        with pytest.raises(ValueError, match="relative path"):
            zygote.start({name: b""}, LIMITS)
    with pytest.raises(SandboxError, match=r"File exists|Not a directory"):
        zygote.start({"a": b"", "a/b": b""}, LIMITS, {"connection": {}}, [])
    assert run(nested, "'next'")[0] == ["'next'"]


def test_too_large_a_submission_says_so(nested):
    with pytest.raises(ValueError, match="more than half of its 8 MiB of disk"):
        nested.take(LIMITS).start({"big": bytes(5 << 20)}, LIMITS)


CROWDS = {
    "processes": "import os\nfor _ in range(12):\n    if os.fork() == 0:\n        while True: pass",
    "threads": "import hashlib, threading\nfor _ in range(12):\n    threading.Thread(target=hashlib.pbkdf2_hmac, "
    "args=('sha256', b'', b'', 2**31 - 1)).start()",
    "sessions": "import os\nfor _ in range(12):\n    if os.fork() == 0:\n        os.setsid()\n        while True: pass",
}


@pytest.mark.parametrize("crowd", CROWDS)
def test_a_crowd_gives_way_to_other_submissions(nested, crowd):
    def given_way():
        found = {pid: threads(pid) for pid in descendants(manager.provisioner.zygote.pid, processes())}
        at_work = [task for each in found.values() for task, working in each.items() if working]
        nice = {os.getpriority(os.PRIO_PROCESS, task) for task in at_work}
        groups = [Path(f"/proc/{pid}/autogroup") for pid, each in found.items() if any(each.values())]
        alike = {path.read_text().split()[-1] for path in groups if crowd == "sessions" and path.exists()}
        return len(at_work) >= 12 and nice == {19} and alike <= {"19"}

    with busy_kernel(nested, CROWDS[crowd]) as manager:
        until_in(manager, given_way, "the crowd had given way")


def test_a_crowd_weighs_less_than_one_process_that_computes():
    assert [zygote._niceness(few) for few in (0, 1, 2)] == [0, 0, 0]
    assert all(crowd * 1.25 ** -zygote._niceness(crowd) < 1 for crowd in range(5, 65))  # sched(7): 1.25 a step


def test_an_end_that_is_reported_at_once_with_the_start_is_not_lost(monkeypatch):
    """As when the zygote gets no processor before a short program is over."""
    reading, writing = os.pipe()
    end = {"code": 70, "cpu_seconds": 2.0, "peak_bytes": 3}
    with os.fdopen(writing, "w") as report:
        for message in ({"init": os.getpid()}, {"ready": True}, end):
            print(json.dumps(message), file=report)
    submission = zygote.RunningSubmission(Place("nested", Path("/tmp")), SubmissionLimits(), reading, os.getpid())
    ends = []
    monkeypatch.setattr(submission, "_bury", lambda *end: ends.append(end))
    assert submission.wait_until_up() is None
    submission._read(0)
    os.close(reading)
    assert (ends, submission._cpu, submission._peak) == ([("exit", 70)], 2.0, 3)


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="Linux does not count here how long one waits")
def test_processes_on_one_processor_wait_for_it():
    place = min(os.sched_getaffinity(0))
    code = f"import os\nos.sched_setaffinity(0, [{place}])\nwhile True: pass"
    pair = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    try:
        until(lambda: all(waited_seconds(process.pid) > 0.1 for process in pair))
    finally:
        for process in pair:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("gone", "waited", "who", "reason"),
    [(50, 45, 7, None), (50, 0, 7, "wall"), (200, 200, 7, "wall"), (50, 45, 8, "wall")],
)
def test_seconds_in_which_a_submission_waits_for_a_processor_do_not_count(monkeypatch, gone, waited, who, reason):
    """... up to ten times its limit of ten seconds, and not those in which its children wait for each other."""
    submission = zygote.RunningSubmission(Place("nested", Path("/tmp")), SubmissionLimits(wall_seconds=10), -1, 0)
    submission._started -= gone
    submission._kernel = [7]
    ends = []
    monkeypatch.setattr(submission, "_read", lambda timeout: False)
    monkeypatch.setattr(submission, "_bury", ends.append)
    monkeypatch.setattr(
        zygote, "usage", lambda init, enough: ({7: ["R", "1", "7", "7"], 8: ["R", "7", "8", "8"]}, 0.0, 0)
    )
    monkeypatch.setattr(zygote, "waited_seconds", lambda pid: waited if pid == who else 0.0)
    submission.look()
    assert ends == ([reason] if reason else [])


def test_numbers_of_system_calls_are_those_of_the_kernels_headers():
    for place, path in enumerate(
        ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm-generic/unistd.h")
    ):
        if not os.path.exists(path):
            pytest.skip(f"{path} is not there (Debian: linux-libc-dev)")
        defined = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", Path(path).read_text()))
        ours = {**linux._REFUSED, "socket": linux._SOCKET, "clone": linux._CLONE, "keyctl": linux._KEYCTL}
        for name, numbers in ours.items():
            assert name not in defined or int(defined[name]) == numbers[place], name


@pytest.mark.skipif(not ROOT, reason="needs root")
def test_root_drops_to_a_pooled_user(anywhere):
    marker = f"warplab-{secrets.token_hex(8)}"
    with busy_kernel(anywhere, f"import subprocess, sys; subprocess.Popen({sleeper(marker)})") as manager:
        until_in(manager, lambda: len(processes_with(marker)) == 1, "its process was there")
        status = Path(f"/proc/{processes_with(marker)[0]}/status").read_text()
    user = int(re.search(r"Uid:\s+(\d+)", status)[1])
    assert user in users.POOL
    assert re.search(r"Groups:\s*(\d*)", status)[1] == ""


@pytest.mark.skipif(not ROOT, reason="needs root")
def test_two_graders_get_two_users():
    with users.pooled_user() as first, users.pooled_user() as second:
        assert first != second
    with users.pooled_user() as again:
        assert again == first


# As an ordinary user: what is there when an instructor grades without being root.

ALSO_AS_USER = "nested and (notebook_runs or survives or out_of_reach) or limits and survives or preflight or refused"


@pytest.mark.sandbox
@pytest.mark.skipif(not ROOT, reason="this is an ordinary user already")
def test_the_same_as_an_ordinary_user():
    sandbox_of("nested")
    packages = Path(pytest.__file__).parents[1]
    with users.pooled_user() as user, tempfile.TemporaryDirectory(prefix="warplab-user-") as name:
        folder = Path(name)
        home = folder / "home"
        for name in ("warplab", "warpcourse"):
            shutil.copytree(sandboxes.COURSE / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        names = (
            "tests/warpcourse/grading/sandbox/test_isolation.py",
            "tests/warpcourse/grading/conftest.py",
            "tests/support/waiting.py",
            "pyproject.toml",
        )
        for file in names:
            copy = folder / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(sandboxes.COURSE / file, copy)
        home.mkdir()
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user)
        options = {"cwd": folder, "user": user, "group": user, "extra_groups": [], "capture_output": True, "text": True}
        common = {"HOME": str(home), "TMPDIR": str(home), "PATH": os.environ["PATH"], "WARPLAB_REQUIRE_SANDBOX": "1"}
        # The interpreter of these tests may lie where only root can read; the system's can use the same packages.
        for python, path in ((sys.executable, folder), ("/usr/bin/python3", f"{folder}:{packages}")):
            environment = {**common, "PYTHONPATH": str(path)}
            version = f"import pytest, nbclient, sys; assert sys.version_info[:2] == {sys.version_info[:2]}"
            with contextlib.suppress(OSError):
                if subprocess.run([python, "-c", version], env=environment, **options).returncode == 0:
                    break
        else:
            pytest.skip("no interpreter that an ordinary user can read has these packages")
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", ALSO_AS_USER]
        command += ["-o", "addopts=--import-mode=importlib"]  # without the plug-in that records a run
        ran = subprocess.run(
            [*command, "tests/warpcourse/grading/sandbox/test_isolation.py"], env=environment, **options
        )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]
    assert int(re.search(r"(\d+) passed", ran.stdout)[1]) >= 7, ran.stdout
    assert "skipped" not in ran.stdout


def test_limits_must_be_positive():
    with pytest.raises(ValueError, match="memory_bytes"):
        SubmissionLimits(memory_bytes=0)
    with pytest.raises(ValueError, match="wall_seconds"):
        SubmissionLimits(wall_seconds=float("nan"))


@pytest.mark.sandbox
def test_a_relative_path_of_the_interpreter_changes_nothing():
    """Of the folder that it leads through, the sandbox has none."""
    here = COURSE / "tests"
    python = os.path.join(here, os.path.relpath(sys.executable, here))
    found = f"from {sandboxes.__name__} import find; print(find().describe())"
    ran = subprocess.run([python, "-c", found], cwd=COURSE, capture_output=True, text=True, check=True)
    assert ran.stdout == f"{sandboxes.find().describe()}\n"

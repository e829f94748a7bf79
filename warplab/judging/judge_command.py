"""The judge: is the kernel right, and how fast would it be? The verdict is JSON.

The answer's code is compiled in a child process, which hands over PTX; the judge makes the launches itself, in the
simulator, from arrays that it draws after that. So there is no timer, cache, stream or library function in the judge's
process that an answer could have changed, and time is an estimate from counters.
"""

import contextlib
import json
import os
import secrets
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from warplab import simulator
from warplab.compile import cuda_signature, ptx_assembler
from warplab.compile.errors import CompilerNotFound
from warplab.compile.ptx_assembler import Assembled
from warplab.estimating.estimate import estimate
from warplab.hardware.cards import card as find_card
from warplab.judging import command, descendants
from warplab.judging import task as tasks
from warplab.judging.compile_answer import LATE, LEFT, SECONDS
from warplab.judging.task import BadTask, Case, Launch, Task
from warplab.launch import cuda_arguments, numba_arguments, policy, profiling
from warplab.launch.array_placement import ArrayPlacement
from warplab.launch.device_arrays import DeviceArray
from warplab.launch.kernel_source import BoundKernel
from warplab.launch.launch_record import Assemble, LaunchRecord
from warplab.launch.simulate import simulate
from warplab.running.assertions import check_limits, limit_tests
from warplab.running.collected import Collected
from warplab.running.run_command import BadInput
from warplab.running.strictness import BOOKS

PATIENCE = 60.0  # seconds beyond those that the child has by itself
MOST_BYTES = 64 << 20  # of the child's result
_ROOT = str(Path(__file__).parents[2])
_CHILD = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from warplab.judging.compile_answer import main; "
    "main(sys.argv[1:])"
)


class WrongAnswer(Exception):
    """What is wrong with an answer; the message is the sentence that its author reads."""


@dataclass
class JudgedKernel:
    """A kernel of the answer, from the child: data that nobody here has checked, but for their types."""

    name: str
    language: str
    ptx: str
    entry: str
    sources: dict[str, str] = field(default_factory=dict)
    code: str = ""
    parameters: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    max_registers: int | None = None
    blank = False

    @property
    def _warplab_source(self) -> "JudgedKernel":
        return self

    def bind(self, args: tuple, arrays: ArrayPlacement) -> BoundKernel:
        entry = self._program().entries.get(self.entry)
        if entry is None:
            raise WrongAnswer(f"the compiled answer has no kernel {self.entry}")
        entry.source_names = self.names
        if self.language == "Numba":
            packed = numba_arguments.pack_arguments(self.parameters, self._signature(args), args, arrays.address)
        else:
            signature = cuda_signature.kernels(self.code).get(self.name)
            packed = cuda_arguments.pack_arguments(self.name, entry, signature, args, arrays.address)
        return BoundKernel(entry, packed, self.assemble, max_registers=self.max_registers)

    def _program(self) -> simulator.Program:
        if not hasattr(self, "_loaded"):
            self._loaded = simulator.load(self.ptx, self.sources)
        return self._loaded

    def _signature(self, args: tuple) -> tuple:
        """Return the Numba types by which arguments are packed: those of the arrays, and the child's of numbers."""
        from numba.cuda import types

        own = numba_arguments.types_of(self.name, self.parameters, args)
        numbers = {str(kind): kind for kind in (*types.integer_domain, *types.real_domain, types.boolean)}
        packed = []
        for have, want in zip(own, self.types, strict=True):
            if isinstance(have, types.Array):
                packed.append(have)
            elif want in numbers:
                packed.append(numbers[want])
            else:
                raise WrongAnswer(f"kernel {self.name} takes {want} where the task gives {have}")
        return tuple(packed)

    def assembler(self, args: tuple) -> Assemble:
        return self.assemble

    def assemble(self, arch: int) -> Assembled:
        return ptx_assembler.assemble(self.ptx, self.entry, arch, self.max_registers)

    def hold_to_the_assembler(self) -> None:
        """Raise WrongAnswer for PTX that NVIDIA's assembler refuses, as where inline PTX stores to constant memory."""
        try:
            ptx_assembler.assemble(
                self.ptx, self.entry, self._program().target.partition(",")[0].removeprefix("sm_"), self.max_registers
            )
        except CompilerNotFound:
            pass  # without the extra: then there is no estimate, either
        except RuntimeError as error:
            raise WrongAnswer(f"the results are right, but no GPU would run {self.name}: {error}") from error


def compile_answer(task: Task, answer: str, cases: Sequence[Case]) -> dict[str, JudgedKernel]:
    """Return the answer's kernels by name, compiled in a child. Raises WrongAnswer, BadTask."""
    wanted: dict[str, dict[str, Any]] = {}
    for one in cases:
        for launch in one.launches:
            asked = {"name": launch.kernel, "args": [_kind(arg, one) for arg in launch.args]}
            if wanted.setdefault(launch.kernel, asked) != asked:
                raise BadTask(f"kernel {launch.kernel} is launched with arguments of several types")
    folder = tempfile.mkdtemp(prefix="warplab-judge-")
    try:
        copy = Path(folder, f"answer{Path(answer).suffix}")
        copy.write_bytes(Path(answer).read_bytes())
        result = Path(folder, "result.json")
        request = {"answer": str(copy), "kernels": [*wanted.values()], "options": task.options}
        found = _child(folder, result, json.dumps(request))
    finally:  # by a program, as folders in folders may be too deep for Python
        subprocess.run(["rm", "-rf", "--", folder], stderr=subprocess.DEVNULL, check=False)
    if copy.suffix != ".py" and isinstance(found, dict) and "task" in found:  # an answer in Python could say so itself
        raise BadTask(f"the task's {found['task']}")
    if not isinstance(found, dict) or "error" in found:
        told = found.get("error") if isinstance(found, dict) else None
        raise WrongAnswer(str(told or "the process that compiled the answer gave no kernels")[:2000])
    kernels = found.get("kernels")
    if not isinstance(kernels, list) or len(kernels) != len(wanted):
        raise WrongAnswer("the process that compiled the answer gave no kernels")
    return {name: _kernel(name, data) for name, data in zip(wanted, kernels, strict=True)}


def _kind(arg: Any, one: Case) -> dict[str, Any]:
    if isinstance(arg, str):
        array = one.start[arg]
        return {"dtype": array.dtype.str, "ndim": array.ndim}
    if not isinstance(arg, np.generic):
        raise BadTask(f"{arg!r} in a launch is no NumPy number: write np.int32({arg!r})")
    return {"dtype": arg.dtype.str}


def _child(folder: str, result: Path, request: str) -> Any:
    command = [sys.executable, "-I", "-c", _CHILD, _ROOT, str(result)]
    known = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "LANG") if name in os.environ}
    environment = {**known, "HOME": folder, "TMPDIR": folder, "WARPLAB_BACKEND": "simulator"}
    nowhere = subprocess.DEVNULL
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": nowhere, "stderr": nowhere}
    inside = os.open(folder, os.O_RDONLY)  # as the answer may put something else in its place
    with descendants.hidden():
        process = subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **streams)
        try:
            process.communicate(request.encode(), SECONDS + PATIENCE)
        except subprocess.TimeoutExpired:
            pass  # it ends itself, if it can
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            ended = process.wait()
            if os.path.islink(folder):
                os.unlink(folder)
    if ended == LATE:
        raise WrongAnswer(f"the answer did not compile within {SECONDS:g} s")
    if ended == LEFT:
        raise WrongAnswer("the answer has started processes that cannot be ended")
    if ended:
        raise WrongAnswer("the process that compiled the answer was ended from outside, by the answer itself perhaps")
    try:
        file = os.open(result.name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=inside)
        with open(file, encoding="utf-8") as opened:
            told = os.fstat(file)
            if not stat.S_ISREG(told.st_mode) or told.st_size > MOST_BYTES:
                raise WrongAnswer("the process that compiled the answer gave more than PTX")
            return json.load(opened)
    except (OSError, ValueError, RecursionError):
        raise WrongAnswer("the process that compiled the answer ended without a result") from None
    finally:
        os.close(inside)


def _kernel(name: str, data: Any) -> JudgedKernel:
    shapes: dict[str, type] = dict.fromkeys(("language", "entry", "code", "ptx"), str)
    shapes |= dict.fromkeys(("sources", "names"), dict) | dict.fromkeys(("parameters", "types"), list)
    if not isinstance(data, dict) or not all(isinstance(data[k], shapes[k]) for k in data.keys() & shapes.keys()):
        raise WrongAnswer("the process that compiled the answer gave something else than kernels")
    parts = [data.get(k, {}) for k in ("sources", "names")]
    texts = [*(v for part in parts for v in part.values()), *data.get("parameters", []), *data.get("types", [])]
    most = data.get("max_registers")
    typed = all(isinstance(text, str) for text in texts) and isinstance(most, int | None)
    if not typed or not {"language", "entry", "ptx"} <= data.keys():
        raise WrongAnswer("the process that compiled the answer gave something else than kernels")
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # halves of characters
        raise WrongAnswer("the process that compiled the answer gave something else than kernels") from None
    return JudgedKernel(name, **{k: data[k] for k in data.keys() & shapes.keys()}, max_registers=most)


def judge(task: Task, answer: str, *, seed: int | None = None, cards: Sequence[str] = ("H100",)) -> dict[str, Any]:
    """Return the verdict on an answer, a path of a .py or .cu file, as docs/run.md describes it. Raises BadTask."""
    try:
        devices = [find_card(name) for name in cards]
        limits = limit_tests(task.limits) if task.limits else []
    except ValueError as error:
        raise BadTask(str(error)) from None
    verdict: dict[str, Any] = {"right": False, "reason": "", "seed": seed, "cases": [], "limits": [], "estimates": []}
    collected = Collected(())
    profiling.collect(collected)
    try:
        # What the child could read in this process's memory, were it there already, is drawn after it has ended.
        declared = [tasks.case(task, size, np.random.default_rng(), referred=False) for size in task.sizes]
        kernels = compile_answer(task, answer, declared)
        verdict["seed"] = secrets.randbits(32) if seed is None else seed
        rng = np.random.default_rng(verdict["seed"])
        cases = [tasks.case(task, size, rng) for size in task.sizes]
        policy.choose(**BOOKS[task.strict], max_seconds=task.max_seconds, trace_warps=0)
        records: list[LaunchRecord] = []
        for one in cases:
            records = _run(kernels, one, task, verdict)
        for kernel in kernels.values():
            kernel.hold_to_the_assembler()
        _hold_limits(limits, records, verdict)
        for device in devices:
            verdict["estimates"].append(_estimated(records, device.name))
        verdict["right"] = True
    except WrongAnswer as error:
        verdict["reason"] = str(error)
    finally:
        profiling.stop(collected)
        policy.choose()
    report = collected.report(estimates=False)
    return {**verdict, "defects": report["defects"], "kernels": report["kernels"]}


def _run(kernels: dict[str, JudgedKernel], one: Case, task: Task, verdict: dict[str, Any]) -> list[LaunchRecord]:
    """Launch one case on a device of its own and compare; return the launches. Raises WrongAnswer."""
    told = {"size": dict(one.size), "right": False, "reason": ""}
    verdict["cases"].append(told)
    device = simulator.Device()
    device.echo = False
    try:
        with simulator.using_device(device):
            arrays = {name: DeviceArray._from_host(array) for name, array in one.start.items()}
            records = [_launch(kernels[launch.kernel], launch, arrays) for launch in one.launches]
            _compare(one, {name: array._view.copy() for name, array in arrays.items()}, task)
    except WrongAnswer as error:
        told["reason"] = str(error)
        raise WrongAnswer(f"{error} (size {dict(one.size)}, seed {verdict['seed']})") from error
    told["right"] = True
    return records


def _launch(kernel: JudgedKernel, launch: Launch, arrays: dict[str, DeviceArray]) -> LaunchRecord:
    args = tuple(arrays[arg] if isinstance(arg, str) else arg for arg in launch.args)
    try:
        record = simulate(kernel, launch.grid, launch.block, args, shared_bytes=launch.shared_bytes)
    except simulator.SimulatorError as error:
        raise WrongAnswer(f"{type(error).__name__}: {error}") from error
    except WrongAnswer:
        raise
    except Exception as error:  # arguments that do not fit, or what no compiler has made
        raise WrongAnswer(f"kernel {kernel.name} cannot be launched: {type(error).__name__}: {error}") from error
    profiling.record(record)
    return record


def _compare(one: Case, found: dict[str, np.ndarray], task: Task) -> None:
    for name, before in one.start.items():
        want, have = one.expected.get(name), found[name]
        if want is None:
            if have.tobytes() != before.tobytes():
                raise WrongAnswer(f"the kernel has changed its input {name}")
            continue
        if have.dtype.kind == "V" and "float" in have.dtype.name:  # bfloat16 and the like, of ml_dtypes
            have, want = have.astype(np.float32), want.astype(np.float32)
        if have.dtype.kind in "fc":
            wrong = ~np.isclose(have, want, task.rtol, task.atol, equal_nan=True)
        else:
            wrong = have != want
        if wrong.any():
            at = tuple(int(n) for n in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
            index = ", ".join(map(str, at))
            never = found[name][at].tobytes() == before[at].tobytes() and name not in one.inputs
            raise WrongAnswer(
                f"{name}[{index}] is {have[at]!s}, {want[at]!s} was expected; {int(wrong.sum()):,} of {wrong.size:,} "
                f"elements are wrong{', and the first of them was never written' if never else ''}"
            )


def _hold_limits(limits: list[tuple], records: list[LaunchRecord], verdict: dict[str, Any]) -> None:
    counts = sum((record.counts for record in records), simulator.Counts())
    rows, wrong = check_limits(limits, counts)
    verdict["limits"] = rows
    if wrong:
        raise WrongAnswer(f"the results are right, but {'; '.join(wrong)}")


def _estimated(records: list[LaunchRecord], card: str) -> dict[str, Any]:
    """Return the time of all launches at the last size on a card, with what such an estimate is worth."""
    try:
        each = [estimate(record, card) for record in records]
    except (RuntimeError, ValueError, OSError) as error:
        return {"card": card, "seconds": None, "limit": "", "worth": f"no estimate: {error}"}
    longest = max(each, key=lambda one: one.seconds)
    seconds = sum(one.seconds for one in each)
    return {"card": card, "seconds": seconds, "limit": longest.limit, "worth": longest.label}


def main(arguments: list[str]) -> int:
    try:
        chosen = command.parser().parse_args(arguments)
        if not os.path.isfile(chosen.answer):
            raise BadTask(f"there is no file {chosen.answer}")
        if not chosen.answer.endswith((".py", ".cu", ".cuh")):
            raise BadTask(f"{chosen.answer} is neither Python (.py) nor CUDA C++ (.cu)")
        if chosen.seed is not None and chosen.seed < 0:
            raise BadTask(f"--seed={chosen.seed}: give 0 or more")
        verdict = judge(tasks.load(chosen.task), chosen.answer, seed=chosen.seed, cards=chosen.card or ("H100",))
    except (BadTask, BadInput) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return command.tell(chosen, verdict)

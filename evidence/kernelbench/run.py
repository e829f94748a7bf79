"""Judge right, wrong and cheating answers to fifteen tasks of KernelBench, and write README.md.

    python -m evidence.kernelbench.run [--only NUMBER]... [KernelBench=DIR]
    python -m evidence.kernelbench.run --page

Each answer goes through `warplab judge`. With a clone of ScalingIntelligence/KernelBench and torch, the references in
NumPy are held to its models, too. results.json keeps all verdicts. The exit code is 1 where a right answer is found
wrong, a wrong one right or wrong for another reason than wrong.toml has, or a reference differs from its model.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evidence.kernelbench.tasks import PROBLEMS, Problem
from warplab.judging import task as tasks
from warplab.judging.judge_command import judge
from warplab.text.tables import markdown

HERE = Path(__file__).parent
RECORD, PAGE = HERE / "results.json", HERE / "README.md"
WRONG = tomllib.loads((HERE / "wrong.toml").read_text(encoding="utf-8"))
SEED = 1
RIGHTS = ("task", "answer", "the judge says", "largest size", "µs on an H100, estimated", "reference, torch's model")
RIGHT, CHEAT = "right", "cheat: "
_HEAD = """# KernelBench's tasks under the judge

<!-- Written by `python -m evidence.kernelbench.run`; do not edit. -->

Fifteen tasks of level 1 of [KernelBench](https://github.com/ScalingIntelligence/KernelBench), chosen here for their
variety, as tasks of `warplab judge` ([docs/run.md](../../docs/run.md)): [tasks.py](tasks.py) has a reference in NumPy
for each, and the launches. The answers are our own: to each task one right, four wrong ([wrong.toml](wrong.toml)) and
one that cheats ([cheats/](cheats)). Judged on {dates}; no GPU took part.

**Of {tasks} right answers {right found right} are found right, of {wrong} wrong and {cheating} cheating ones
{wrong or cheating found right}.** {as expected} of all {answers} verdicts give the reason that was expected.

- **Sizes** are what the simulator does in seconds, three for each task, the first of one element or two; KernelBench's
  are up to millions of times larger. What is right here can be wrong there, where an index passes 2^31. Times are
  those of these small launches.
- **Inputs** are normal numbers. KernelBench draws from [0, 1), on which ReLU is the identity and a loss hardly depends
  on its inputs. Models' weights, too, are drawn here.
- **Launches** are the task's. KernelBench leaves them to the answer, with the host's code around them."""
_HELD = """
- **References** were compared with the models themselves in torch {torch}, at KernelBench's commit `{commit}`, at these
  sizes and tolerances."""


@dataclass(frozen=True)
class Answer:
    """`reason`: what the judge must say of it, a regular expression; "" of a right one."""

    name: str
    suffix: str
    text: str
    reason: str


def answers(problem: Problem) -> Iterator[Answer]:
    """Yield the right answer to a problem, the wrong ones, and a cheating one."""
    (file,) = (HERE / "answers").glob(f"{problem.number}.*")
    right = file.read_text(encoding="utf-8")
    yield Answer(RIGHT, file.suffix, right, "")
    for wrong in WRONG[problem.number]:
        text = right
        for old, new in wrong["replace"]:
            if old not in text:
                raise ValueError(f"wrong.toml, {problem.number}, {wrong['name']}: {file.name} has no {old!r}")
            text = text.replace(old, new)
        yield Answer(wrong["name"], file.suffix, text, wrong["reason"])
    name, reason = [*WRONG["cheats"].items()][PROBLEMS.index(problem) % len(WRONG["cheats"])]
    text = (HERE / "cheats" / f"{name}.py").read_text(encoding="utf-8")
    case = tasks.case(problem.task, problem.task.sizes[0], np.random.default_rng(SEED))
    heads = {f"def {one.kernel}({', '.join(f'a{n}' for n in range(len(one.args)))}):" for one in case.launches}
    kernels = "\n\n".join(f"@cuda.jit\n{head}\n    pass\n" for head in sorted(heads))
    yield Answer(CHEAT + name.replace("_", " "), ".py", text.replace("# KERNELS", kernels), reason)


def run(problem: Problem, answer: Answer) -> dict[str, Any]:
    """Return what the judge says of an answer, and whether it should."""
    with tempfile.TemporaryDirectory(prefix="kernelbench-") as folder:
        file = Path(folder, f"answer{answer.suffix}")
        file.write_text(answer.text, encoding="utf-8")
        verdict = judge(problem.task, str(file), seed=SEED, cards=() if answer.reason else ("H100",))
    said = verdict["reason"]
    expected = not said if not answer.reason else re.search(answer.reason, said) is not None
    kept: dict[str, Any] = {"right": verdict["right"], "reason": said, "expected": expected}
    if verdict["right"]:
        counts = [kernel["launches"] for kernel in verdict["kernels"]]
        kept |= {"launches": sum(counts), "estimates": verdict["estimates"]}
    return kept


def apart(problem: Problem, clone: Path) -> str:
    """Compare the reference with KernelBench's model in torch at each size; return where they differ, or ""."""
    import torch

    for size in problem.task.sizes:
        names: dict[str, Any] = {}
        file = clone / "KernelBench" / "level1" / problem.file
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), names)
        names.update(size)
        model = names["Model"](*names["get_init_inputs"]())
        case = tasks.case(problem.task, size, np.random.default_rng(SEED))
        state = {there: torch.from_numpy(case.inputs[here]) for here, there in problem.parameters.items()}
        model.load_state_dict(state)
        with torch.no_grad():
            found = model(*(torch.from_numpy(case.inputs[name]) for name in problem.tensors)).numpy()
        want = case.expected[problem.result]
        if found.shape != want.shape or not np.allclose(found, want, problem.task.rtol, problem.task.atol):
            return f"{problem.result} of torch differs at {size}"
    return ""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clone", nargs="?", metavar="KernelBench=DIR", help="hold the references to it, with torch")
    parser.add_argument("--only", action="append", metavar="NUMBER", help="judge answers to this task")
    parser.add_argument("--page", action="store_true", help="write the page from the record")
    options = parser.parse_args(arguments)
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {"problems": {}}
    for problem in () if options.page else PROBLEMS:
        if options.only and problem.number not in options.only:
            continue
        before = record["problems"].get(problem.file, {})
        kept = {"date": f"{datetime.date.today()}", "answers": {a.name: run(problem, a) for a in answers(problem)}}
        if "reference" in before and not options.clone:
            kept["reference"] = before["reference"]
        elif options.clone:
            kept["reference"] = _held(problem, Path(options.clone.partition("=")[2]))
        record["problems"][problem.file] = kept
        odd = [name for name, one in kept["answers"].items() if not one["expected"]]
        print(
            f"{problem.file}: {len(kept['answers'])} answers, not as expected: {', '.join(odd) or 'none'}", flush=True
        )
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(record), encoding="utf-8")
    counts = totals(record)
    print(json.dumps({**counts, "device": "simulator", "dates": _dates(record)}))
    return int(counts["as expected"] != counts["answers"] or counts["references apart"] > 0)


def _held(problem: Problem, clone: Path) -> dict[str, str]:
    import torch

    head = ["git", "-C", str(clone), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=False).stdout.strip()
    return {"apart": apart(problem, clone), "torch": torch.__version__, "commit": commit}


def totals(record: dict[str, Any]) -> dict[str, int]:
    """Return how many tasks and answers there are, and what was said of them."""
    every = [(name, one) for kept in record["problems"].values() for name, one in kept["answers"].items()]
    references = [kept["reference"]["apart"] for kept in record["problems"].values() if "reference" in kept]
    return {
        "tasks": len(record["problems"]),
        "answers": len(every),
        "as expected": sum(one["expected"] for _, one in every),
        "right found right": sum(one["right"] for name, one in every if name == RIGHT),
        "wrong": sum(name != RIGHT and not name.startswith(CHEAT) for name, _ in every),
        "cheating": sum(name.startswith(CHEAT) for name, _ in every),
        "wrong or cheating found right": sum(one["right"] for name, one in every if name != RIGHT),
        "references held": len(references),
        "references apart": sum(map(bool, references)),
    }


def _dates(record: dict[str, Any]) -> list[str]:
    return sorted({kept["date"] for kept in record["problems"].values()})


def page(record: dict[str, Any]) -> str:
    """Return the page for a record."""
    counts = totals(record)
    known = {problem.file: problem for problem in PROBLEMS}
    rights, wrongs = [], []
    for file, kept in record["problems"].items():
        problem = known[file]
        (suffix,) = (answer.suffix for answer in answers(problem) if answer.name == RIGHT)
        right = kept["answers"][RIGHT]
        seconds = right["estimates"][0]["seconds"] if right["right"] else None
        rights.append(
            (
                file.removesuffix(".py").strip("_").replace("_", " "),
                f"[{problem.number}{suffix}](answers/{problem.number}{suffix})",
                _first(right),
                ", ".join(f"{name} {n}" for name, n in problem.task.sizes[-1].items()),
                f"{1e6 * seconds:.1f}" if seconds else "",
                kept["reference"]["apart"] or "agree" if "reference" in kept else "not compared",
            )
        )
        wrongs += [(problem.number, name, _first(one)) for name, one in kept["answers"].items() if name != RIGHT]
    held = {
        (k["reference"]["commit"], k["reference"]["torch"]) for k in record["problems"].values() if "reference" in k
    }
    told = "".join(_HELD.format(commit=commit, torch=torch) for commit, torch in sorted(held))
    parts = [_HEAD.format(dates=" and ".join(_dates(record)), **counts) + told, markdown(RIGHTS, rights)]
    parts += ["## Wrong and cheating answers", markdown(("task", "answer", "the judge says"), wrongs)]
    return "\n\n".join(parts) + "\n"


def _first(one: dict[str, Any]) -> str:
    said = "right" if one["right"] else one["reason"].replace("\n", " ")
    return (said if len(said) <= 160 else said[:157] + "...") + ("" if one["expected"] else " (not as expected)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

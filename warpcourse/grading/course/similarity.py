"""Similarity of the kernels of two submissions, whatever was renamed, reformatted or reordered in their source.

    given = {kernel: features(ptx of the solution) | features(ptx of the release)}
    pairs = ranked({student: {kernel: features(ptx)}}, given)

A kernel's PTX becomes a graph. An instruction's neighbours are those whose results it reads, and a branch's target. Its
first label is its operation; in each of three rounds its new label combines the old one, its constants and the labels
of its neighbours (Shervashidze et al., "Weisfeiler-Lehman Graph Kernels", JMLR 12, 2011). Names of registers, symbols
and jump labels, line numbers, comments and the order of independent instructions leave no trace. The similarity of two
kernels is the share of their common labels. Labels that the solution or the release contains do not count, labels that
many in the class have count little. A person must judge the rest.

Fingerprints of the source's tokens do not find the same. Of the three kernels in its test, copydetect 0.5.0 (windows of
25 tokens) calls the rewritten copy 46 to 52 % alike and the answer of one's own 56 to 63; here they are above 90 and
below 30. JPlag, which compares tokens, too, was not tried: it would bring Java to whoever grades.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

ROUNDS = 3
MAX_INSTRUCTIONS = 20_000  # per kernel; the rest is ignored
LEAST = 0.8  # less similar pairs are not listed
FEWEST = 3  # nor are pairs that share fewer instructions of their own

Features = Counter[str]

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LINE = re.compile(r"^[ \t]*\.(?:loc|file|version|target|address_size)\b[^\n]*$", re.MULTILINE)
_HEAD = re.compile(r"(?:\.\w+\s+)*\.(?:entry|func)\b[^{]*\{")
_LABEL = re.compile(r"([\w$]+):(?!:)")
_REGISTER = re.compile(r"(%[\w$]+?)(<\d+>)?\s*(?:,|\Z)")
_SYMBOL = re.compile(r"\.(shared|local|const|global)\b.*?(\.[bsuf]\d+)\s+([\w$]+)((?:\[\d*\])*)", re.DOTALL)
_PREDICATE = re.compile(r"@(!?)(%[\w$]+)\s*")
_OPERAND = re.compile(r"%[\w$]+(?:\.[xyzw])?|[+-]?[\w$]+")
_RESULT = re.compile(r"\s*(?:\{[^}]*\}|[^,{\[]+)")
_PARAMETER = re.compile(r"\w+_param_(\d+)\Z")
_COMMUTATIVE = re.compile(r"(?:add|mul|and|or|xor|min|max|mad|fma)\b")  # in the first two operands
_WITHOUT_RESULT = re.compile(
    r"(?:st|bra|brx|ret|exit|bar|barrier|red|membar|fence|prefetchu?|trap|brkpt|call|cp|nanosleep|stmatrix)\b"
)


@dataclass
class _Instruction:
    """One instruction. `writes`: registers. `operands`: registers, constants, symbols and labels it reads, in order."""

    operation: str
    writes: list[str]
    operands: list[str]


@dataclass
class _Kernel:
    """One kernel. `labels`: label -> number of the next instruction. `symbols`: variable -> its kind and size."""

    instructions: list[_Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    symbols: dict[str, str] = field(default_factory=dict)
    prefixes: set[str] = field(default_factory=set)  # of registers
    registers: set[str] = field(default_factory=set)


def features(ptx: str) -> Features:
    """Return the labels of all instructions after one, two and three rounds, with their counts.

    Accepts any text. The features of text that is no PTX are meaningless.
    """
    kernel = _read(ptx)
    writers: dict[str, list[int]] = {}
    for number, instruction in enumerate(kernel.instructions):
        for register in instruction.writes:
            writers.setdefault(register, []).append(number)
    labels = [_hash(instruction.operation) for instruction in kernel.instructions]
    found: Features = Counter()
    for number in range(1, ROUNDS + 1):
        # Once for each register: many instructions may write and read the same.
        read = {name: _hash(*sorted({labels[n] for n in numbers})) for name, numbers in writers.items()}
        labels = [
            _label(i, [read.get(operand) or _part(operand, kernel, labels) for operand in i.operands])
            for i in kernel.instructions
        ]
        found.update(f"{number} {label}" for label in labels)
    return found


def _label(instruction: _Instruction, parts: list[str]) -> str:
    if _COMMUTATIVE.match(instruction.operation):
        parts = [*sorted(parts[:2]), *parts[2:]]
    return _hash(instruction.operation, *parts)


def _part(operand: str, kernel: _Kernel, labels: list[str]) -> str:
    """Return the part of a label that an operand makes which no instruction writes: the operand without its name."""
    if operand in kernel.labels:
        number = kernel.labels[operand]
        return labels[number] if number < len(labels) else "end"
    if operand in kernel.symbols:
        return kernel.symbols[operand]
    parameter = _PARAMETER.match(operand)
    return f"parameter {parameter[1]}" if parameter else operand


def _hash(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _read(ptx: str) -> _Kernel:
    kernel = _Kernel()
    text = _LINE.sub("", _COMMENT.sub("", ptx.partition("\n.section")[0]))
    for statement in text.split(";"):
        for words in _statements(statement, kernel):
            if words.startswith("."):
                _declare(words, kernel)
            elif len(kernel.instructions) < MAX_INSTRUCTIONS:
                kernel.instructions.append(_instruction(words, kernel))
    return kernel


def _statements(text: str, kernel: _Kernel) -> Iterator[str]:
    """Yield the statement at the end of a text, without heads of functions, labels and braces before it."""
    at = 0
    while True:
        while at < len(text) and (text[at].isspace() or text[at] in "{}"):
            at += 1
        head, label = _HEAD.match(text, at), _LABEL.match(text, at)
        if head:
            at = head.end()
        elif label:
            kernel.labels[label[1]] = len(kernel.instructions)
            at = label.end()
        else:
            break
    if at < len(text):
        yield text[at:].strip()


def _declare(words: str, kernel: _Kernel) -> None:
    if words.startswith(".reg"):
        for name, count in _REGISTER.findall(words.split(None, 2)[-1]):
            (kernel.prefixes if count else kernel.registers).add(name)
    elif symbol := _SYMBOL.search(words[:1000]):
        space, kind, name, size = symbol.groups()
        kernel.symbols[name] = f"{space} {kind}{size}"


def _instruction(words: str, kernel: _Kernel) -> _Instruction:
    predicate = _PREDICATE.match(words)
    words = words[predicate.end() :] if predicate else words
    operation, _, rest = words.partition(" ") if " " in words else words.partition("\t")
    operation = operation.strip()
    writes: list[str] = []
    if not _WITHOUT_RESULT.match(operation) and (result := _RESULT.match(rest)):
        writes = [name for name in _OPERAND.findall(result[0]) if _is_register(name, kernel)]
        rest = rest[result.end() :]
    operands = _OPERAND.findall(rest)
    if predicate:
        operation += " if not" if predicate[1] else " if"
        operands.append(predicate[2])
    return _Instruction(operation, writes, operands)


def _is_register(name: str, kernel: _Kernel) -> bool:
    return name in kernel.registers or name.rstrip("0123456789") in kernel.prefixes


# -- a class -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Two similar submissions.

    `alike`: 0 to 1. `shared`: kernel -> instructions that both have and the solution has not. `weight`: how much is
    shared, in bits; an instruction that only these two of n have counts log2(n / 2).
    """

    students: tuple[str, str]
    alike: float
    weight: float
    shared: dict[str, int]


def ranked(
    kernels: Mapping[str, Mapping[str, Features]],
    given: Mapping[str, Features],
    least: float = LEAST,
    fewest: int = FEWEST,
) -> list[Pair]:
    """Return pairs of submissions that are similar in what is their own, those that share most first.

    `kernels`: student -> kernel -> its features. `given`: kernel -> features of the solution and the release.
    """
    own = {
        student: {
            name: Counter({feature: n for feature, n in found.items() if feature not in given.get(name, ())})
            for name, found in theirs.items()
        }
        for student, theirs in kernels.items()
    }
    weights = _weights(own)
    totals = {student: _weight(theirs, theirs, weights) for student, theirs in own.items()}
    pairs = []
    for one, other in combinations(sorted(own), 2):
        if min(totals[one], totals[other]) <= 0:
            continue
        weight = _weight(own[one], own[other], weights)
        alike = 2 * weight / (totals[one] + totals[other])
        if alike >= least:
            shared = _shared(own[one], own[other])
            if sum(shared.values()) >= fewest:
                pairs.append(Pair((one, other), alike, weight / ROUNDS, shared))
    return sorted(pairs, key=lambda pair: (-pair.weight, -pair.alike, pair.students))


def _weights(own: Mapping[str, Mapping[str, Features]]) -> dict[str, dict[str, float]]:
    """Return kernel -> feature -> its weight in bits: the rarer in the class the more, at least half a bit."""
    students: Counter[str] = Counter()
    holders: dict[str, Counter[str]] = {}
    for theirs in own.values():
        for name, found in theirs.items():
            students[name] += 1
            holders.setdefault(name, Counter()).update(found.keys())
    return {
        name: {feature: max(math.log2(students[name] / n), 0.5) for feature, n in counts.items()}
        for name, counts in holders.items()
    }


def _weight(
    one: Mapping[str, Features], other: Mapping[str, Features], weights: Mapping[str, Mapping[str, float]]
) -> float:
    """Return the weight of everything that both have."""
    return sum(
        weights[name][feature] * min(n, other[name][feature])
        for name in one.keys() & other.keys()
        for feature, n in one[name].items()
        if feature in other[name]
    )


def _shared(one: Mapping[str, Features], other: Mapping[str, Features]) -> dict[str, int]:
    """Return kernel -> number of instructions that both have, with equal nearest neighbours."""
    found = {}
    for name in sorted(one.keys() & other.keys()):
        both = one[name] & other[name]
        if count := sum(n for feature, n in both.items() if feature.startswith("1 ")):
            found[name] = count
    return found

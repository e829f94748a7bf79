"""The text of XLA's programs (HLO): what is in them, and what of it is launched. Knows no framework.

HLO is described at https://openxla.org/xla/operation_semantics.
"""

import re
from collections import Counter

_INSTRUCTION = re.compile(r"^(?:ROOT )?(?:%)?[\w.-]+ = (?:\([^=]*?\)|\S+) ([\w-]+)\(")
NOT_LAUNCHED = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast"})


def computations(text: str) -> dict[str, list[str]]:
    """Return instructions by computation, without metadata and configuration. The entry's key is "ENTRY"."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        head = re.match(r"^(ENTRY )?%?([\w.-]+)?.*\{$", line)
        if head and not line.startswith((" ", "HloModule")):
            name = "ENTRY" if head[1] else str(head[2])
            found[name] = []
        elif name and line.startswith(" "):
            found[name].append(re.sub(r", (metadata|backend_config|sharding)=.*", "", line.strip()))
        elif line.startswith("}"):
            name = ""
    return found


def operations(lines: list[str]) -> Counter[str]:
    """Return how often each operation occurs among instructions, parameters and constants included."""
    return Counter(match[1] for line in lines if (match := _INSTRUCTION.match(line)))


def entry(text: str) -> list[str]:
    """Return instructions of the entry computation. ValueError for a text without one."""
    found = computations(text)
    if "ENTRY" not in found:
        raise ValueError("this is no HLO module: it has no ENTRY computation")
    return found["ENTRY"]


def launched(text: str) -> int:
    """Return how many instructions of the entry computation do work: fusions, calls, copies and the like."""
    return sum(n for name, n in operations(entry(text)).items() if name not in NOT_LAUNCHED)

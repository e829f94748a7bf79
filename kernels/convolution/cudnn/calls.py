"""The calls of the sources' example, and what each has become: the table that the lesson shows.

The talk of 2017 draws cuDNN's flow as descriptors, a search for an algorithm, and a call. Sources: cuDNN's
documentation, "cudnn_graph library", "cudnn_ops library" and "cudnn_cnn library" for the calls on the left (most of
them deprecated since version 9; cudnnGetConvolutionForwardAlgorithm left in version 8, its …_v7 stayed), "Graph API"
and nvidia-cudnn-frontend 1.28 for those on the right.
"""

import csv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Call:
    """A call of 2017. `today`: what one writes with the graph API; `why`: what changed, in a line."""

    then: str
    today: str
    why: str


with Path(__file__).with_name("calls.tsv").open(encoding="utf-8") as rows:
    CALLS = tuple(Call(**row) for row in csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE))

"""The record of lab 13."""

from warpcourse.bench.lab import Lab

LAB = Lab(
    __package__,
    "13_attention",
    "Attention: where fusion meets recomputation",
    "dot-product attention is fast, as it is products of matrices; recomputing is faster than reading",
    benchmark="benchmark",
    launches="launches",
    offers=("ATTENTION",),
    code_cells=43,
    pictures=3,
    further=(("13_attention_at_work", 33, 2),),
    shown={
        "attention-sentence": "Who attends to whom: the weights of a sentence of digits",
        "attention-running": "One row read once: scores, running maximum, running sum",
        "attention-tiles": "Tiles of a causal mask that are needed",
    },
)

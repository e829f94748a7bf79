"""The record of lab 12."""

from warplab.bench.lab import Lab

LAB = Lab(
    __package__,
    "12_digits",
    "DIGITS: train, look inside and deploy, in one page",
    status="in the making",
    simulator=False,
    cpu=True,
)

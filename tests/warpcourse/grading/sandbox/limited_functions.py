"""Functions that test_limited calls in a process of their own."""

from __future__ import annotations

import os
from os import abort  # noqa: F401  # called by name


def pid():
    return os.getpid()


def spin():
    while True:
        pass


def grab(size):
    return len(bytearray(size))


def echo(value):
    return value


def divide(a, b):
    return a / b


def print_and_return(value):
    print("in between", flush=True)
    return value

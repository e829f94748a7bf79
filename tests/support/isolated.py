"""Functions that tests call in a process of their own."""

import os
import sys
import time


def echo(*arguments):
    print("something else")
    return {"arguments": arguments, "process": os.getpid()}


def die():
    print("last words", file=sys.stderr, flush=True)
    os._exit(3)


def hang():
    time.sleep(60)

"""Installs the stand-ins in a Python that a program under `warplab.install()` starts, then runs the sitecustomize that
this one hides."""

import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def _the_hidden_one():
    path = [folder for folder in sys.path if os.path.abspath(folder) != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get("WARPLAB") == "1":
    try:
        from warplab.running import session
    except ImportError as error:
        print(f"WARPLAB=1, but this Python ({sys.executable}) cannot load Warp Lab: {error}", file=sys.stderr)
    else:
        session.join()
_the_hidden_one()

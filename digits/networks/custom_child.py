"""Runs in the sandbox, beside the user's code: calls `network(image, classes)` and writes down what it returned.

It is copied there with `configuration`. Nothing that it answers is believed: the user's code is in this process.
"""

import contextlib
import json
import os
import sys
import traceback

from digits.networks import configuration

FILE = "network.py"  # the user's


def main() -> None:
    """Answer {"configuration": ...} or {"error": ...} as JSON."""
    with open("request.json", encoding="utf-8") as file:
        request = json.load(file)
    try:
        answer = {"configuration": configured(tuple(request["image"]), request["classes"])}
    except BaseException as error:
        answer = {"error": explained(error)}
    with os.fdopen(int(sys.argv[1]), "wb") as out:
        out.write(json.dumps(answer).encode())
    with contextlib.suppress(OSError):
        os.close(1)
    os._exit(0)  # threads of the user's may run on


def configured(image: tuple[int, ...], classes: int) -> dict:
    """Return what the user's network is, as plain data."""
    with open(FILE, encoding="utf-8") as file:
        source = file.read()
    names: dict = {"__name__": "network"}
    exec(compile(source, FILE, "exec"), names)
    if not callable(names.get("network")):
        raise configuration.ConfigurationError("The code has no function network(image, classes). Define one.")
    model = names["network"](image, classes)
    found = configuration.check(configuration.describe(model), image, classes)
    if settings := configuration.lost(model, configuration.build(found)):
        raise configuration.ConfigurationError(
            f"Some settings cannot be kept: {'; '.join(settings[:4])}. Leave them at their defaults."
        )
    return found


def explained(error: BaseException) -> str:
    """Return an error as its author needs it: the line of the code, and what Python says."""
    if type(error).__name__ == "ConfigurationError":
        return str(error)
    text = str(error).strip().splitlines()
    said = f"{type(error).__name__}: {text[0] if text else ''}"[:500]
    if isinstance(error, OSError):
        said += " (The sandbox has no network and none of your files.)"
    if isinstance(error, SyntaxError) and error.filename == FILE:
        return f"Line {error.lineno}: {said}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
    return f"Line {lines[-1]}: {said}" if lines else said


if __name__ == "__main__":
    main()

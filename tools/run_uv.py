"""Run the uv of .venv with the settings that pip has on this machine: `python -m tools.run_uv pip compile ...`.

uv reads neither pip.conf nor PIP_* variables, and a classroom's mirror or proxy usually stands there. UV_* variables
that are set already, even to nothing, win.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

BIN = Path(__file__).resolve().parent.parent / ".venv" / "bin"
LEVELS = ("global", "install", ":env:")  # of pip's settings, the strongest last
# pip's option: uv's variable, and what separates several values (None: there is one).
VARIABLES: dict[str, tuple[str, str | None]] = {
    "index-url": ("UV_DEFAULT_INDEX", None),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "proxy": ("ALL_PROXY", None),
    "cert": ("SSL_CERT_FILE", None),
    "client-cert": ("SSL_CLIENT_CERT", None),
    "default-timeout": ("UV_HTTP_TIMEOUT", None),
    "timeout": ("UV_HTTP_TIMEOUT", None),
    "retries": ("UV_HTTP_RETRIES", None),
}


def pip_settings(listing: str) -> dict[str, str]:
    """Return the settings of `pip install` by option, from what `pip config list` prints."""
    found = {}
    for level in LEVELS:
        for line in listing.splitlines():
            key, _, value = line.partition("=")
            section, _, option = key.partition(".")
            if section == level and (text := str(ast.literal_eval(value)).strip()):  # pip ignores empty ones
                found[option] = text
    return found


def uv_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that tell uv what pip's settings tell pip."""
    found = {"UV_INDEX_STRATEGY": "unsafe-best-match"}  # as pip does: all indexes are equal
    for option, (variable, separator) in VARIABLES.items():
        if option in settings:
            found[variable] = settings[option] if separator is None else separator.join(settings[option].split())
    return found


def uv(*arguments: str) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the environment that run .venv's uv with these arguments."""
    config = [str(BIN / "python"), "-I", "-m", "pip", "config", "list"]
    settings = pip_settings(subprocess.run(config, capture_output=True, text=True, check=True).stdout)
    command = [str(BIN / "uv"), *arguments]
    if arguments[0] == "pip" and settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        command.append("--no-index")  # which has no variable
    return command, {**uv_variables(settings), **os.environ}


def main(arguments: list[str]) -> int:
    command, environment = uv(*arguments)
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

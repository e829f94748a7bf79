"""`python -m warplab digits`: open the page of lab 12. See digits/page/server.py for what serves it."""

import argparse
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from digits.files import DigitsError
from digits.workspace import Workspace

PORT = 8812
RETRIES = 50  # ports near it that are tried, if none was asked for


def main(argv: list[str] | None = None) -> int:
    """Serve the page until it is ended. Returns 1 where workspace or port cannot be had."""
    arguments = _arguments(argv)
    try:
        workspace = Workspace(arguments.workspace)
        if arguments.port:
            _free(arguments.port)
    except DigitsError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    # Here, since it brings Voilà and Jupyter's server: wrong arguments are said at once. Without rfc3987_syntax, which
    # nothing here needs, jsonschema is imported 2 s faster; see warpcourse/grading/__init__.py.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    from digits.page.server import serve

    port, retries = (arguments.port, 0) if arguments.port else (PORT, RETRIES)
    with tempfile.TemporaryDirectory(prefix="digits-") as folder:
        serve(workspace, Path(folder), port, retries, arguments.browser)
    return 0


def _free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise DigitsError(
                f"Port {port} cannot be used ({error.strerror}). Name another one, or none: --port {port + 1}"
            ) from error


def _arguments(argv: list[str] | None) -> Any:
    parser = argparse.ArgumentParser(
        "python -m warplab digits",
        description="Open a page in which networks are trained, looked into and deployed, for this machine alone.",
    )
    parser.add_argument("--port", type=_port, help=f"port of the page (default: {PORT}, or a free one near it)")
    parser.add_argument("--no-browser", dest="browser", action="store_false", help="only say the address")
    parser.add_argument("--workspace", help="folder of datasets, runs and plans (default: digits_workspace/ in yours)")
    return parser.parse_args(argv)


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"a port is a number from 1 to 65535, not {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())

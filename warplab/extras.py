"""Packages that `pip install warplab` leaves out: an error that names the extra which brings a missing one."""

import contextlib

# What is imported -> the extra of pyproject.toml that brings it.
EXTRAS = {"IPython": "notebook", "cupy": "gpu", "ipywidgets": "notebook", "matplotlib": "notebook"}
EXTRAS |= {"numba": "numba", "numba_cuda_mlir": "mlir", "scipy": "estimate", "triton": "triton"}


class MissingExtra(ModuleNotFoundError):
    """A package of an extra is not installed; the message says how to get it."""


@contextlib.contextmanager
def needed_for(what: str):
    """Raise MissingExtra where an import within fails for want of a package of an extra. `what`: what needs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = error.name
        if isinstance(error, MissingExtra) or package not in EXTRAS:
            raise
        how = f'pip install "warplab[{EXTRAS[package]}]"'
        raise MissingExtra(f"{what} needs the package {package}, which is not installed: {how}", name=package) from None

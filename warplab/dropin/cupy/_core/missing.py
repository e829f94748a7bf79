"""The error for a name of CuPy that the simulator does not have."""


def missing(module: str, name: str) -> AttributeError:
    return AttributeError(
        f"{module}.{name} is not on the simulator, which has what the course uses; on a GPU all of CuPy is there"
    )

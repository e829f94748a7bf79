"""`with warplab.profile() as p:` collects the launches inside it and shows them as a table."""

from html import escape

from warplab.launch.profiling import RecordedLaunches, collect, stop
from warplab.report import profile_report


class Profile(RecordedLaunches):
    """The launches made inside `with profile():`. Printed, or as the value of a cell, it is a table."""

    def __str__(self) -> str:
        return "\n".join([profile_report.text(self) if self.launches else EMPTY, *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return (profile_report.html(self) if self.launches else f"<p>{escape(EMPTY)}</p>") + notes


EMPTY = (
    "No launch was recorded. A kernel is recorded when it is launched inside the `with` block: "
    "kernel[grid, block](...) of numba.cuda, kernel(grid, block, args) of CuPy's RawKernel or of a %%cuda cell. "
    "CuPy's array operations and calls of other libraries are not."
)


class profile:
    """Collect the kernel launches of a `with` block in a `Profile`.

    >>> with profile() as p:
    ...     kernel[grid, block](a, b)
    >>> p  # a table in a notebook; print(p) elsewhere
    """

    def __enter__(self) -> Profile:
        self._profile = Profile()
        collect(self._profile)
        return self._profile

    def __exit__(self, *_) -> None:
        stop(self._profile)

"""A plan behind HTTP, by lab 11's service in a process of its own, which ends with the process that started it.

with start(workspace, plan_id) as running:
    running.ask(images)
"""

from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from digits.deploy import plans
from digits.files import DigitsError
from digits.workspace import Workspace

ENGINE = "digits.deploy.engine:from_plan"


def missing() -> str:
    """Return which lab is missing for a service, and what that means; "" if none is."""
    if why := plans.missing():
        return why
    try:
        import kernels.serving.serve.service.process  # noqa: F401
    except ModuleNotFoundError:
        return "Lab 11 (kernels/serving) is not in this copy of the course, so a plan cannot be served."
    return ""


class RunningService:
    """`url`: where it listens. `plan`: the ID of what it serves."""

    def __init__(self, process: Any, plan: str) -> None:
        self._process, self.plan = process, plan
        self.url: str = process.url

    def ask(self, images: NDArray[np.float32], timeout: float = 120.0) -> NDArray[np.float64]:
        """Return probabilities, (images, classes), for images from 0 to 1, (images, height, width, channels), by POST.

        DigitsError with the service's own reason if it refuses them or is gone.
        """
        from kernels.serving.serve.service.process import Refused

        try:
            return self._process.ask(np.asarray(images), timeout)
        except Refused as error:
            raise DigitsError(f"The service refused the request with {error}") from None
        except OSError as error:
            raise DigitsError(f"The service at {self.url} does not answer ({error}). Start it again.") from error

    def stop(self) -> dict[str, int]:
        """Shut it down; what it accepted is answered first. Returns lab 11's counts: {"accepted", "answered", ...}."""
        from kernels.serving.serve.service.server import ServiceError

        try:
            return self._process.stop()
        except ServiceError as error:
            raise DigitsError(f"The service did not stop as it should: {error}") from error

    def __enter__(self) -> "RunningService":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._process.__exit__(kind, error, traceback)


def start(workspace: Workspace, plan: str, *, batch_limit: int = 8) -> RunningService:
    """Serve a plan that is done on a free port of 127.0.0.1, and return when it answers; takes some seconds.

    Raises DigitsError where a lab is missing, the plan is not done, or the service does not start.
    """
    if why := missing():
        raise DigitsError(why)
    job = plans.open(workspace, plan)
    if (status := job.state()["status"]) != "done":
        raise DigitsError(f"The plan {plan} is {status}; it can be served once it is done.")
    from kernels.serving.serve.service import process as service_process
    from kernels.serving.serve.service.server import ServiceError

    try:
        process = service_process.start(
            ENGINE, options={"folder": str(job.folder)}, batch_limit=batch_limit, capacity=max(256, batch_limit)
        )
    except (ServiceError, OSError) as error:
        raise DigitsError(f"The plan {plan} could not be served: {error}") from error
    return RunningService(process, plan)

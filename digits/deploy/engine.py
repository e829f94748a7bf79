"""The engine that lab 11's service starts for a plan: `digits.deploy.engine:from_plan`, with the option `folder`."""

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from digits.deploy.plans import PlanJob
from digits.files import DigitsError


class PlanEngine:
    """Images as the network was trained on, float32 from 0 to 1, (height, width, channels), to probabilities."""

    def __init__(self, folder: Path) -> None:
        from kernels.fusion.served import from_files

        files = PlanJob(folder).files()
        if not files:
            raise DigitsError(f"There are no plan files in {folder.name}. Build the plan first.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it was built for another device is in the report
            self._served = from_files(files)
        channels, height, width = self._served.shape
        self.shape = (height, width, channels)
        self.name = f"{folder.name}: {self._served.name}"

    def predict(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return probabilities, (images, classes), for (images, height, width, channels)."""
        return self._served.predict(np.ascontiguousarray(batch.transpose(0, 3, 1, 2)))


def from_plan(folder: str) -> PlanEngine:
    """Return the engine of the plan in a folder. Raises DigitsError or lab 09's ValueErrors for a damaged one."""
    return PlanEngine(Path(folder))

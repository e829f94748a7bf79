"""Where the course is on this machine, and where the learner's own copy of it."""

import os
from pathlib import Path

# The folder that holds notebooks/, kernels/, exercises/ and the package `warplab`.
COURSE = Path(__file__).resolve().parent.parent


def own_folder() -> Path:
    """Return the learner's own folder: `mine` in the course's folder, or what WARPLAB_MINE names.

    It holds the lessons and exercises that the learner works in, and what the course keeps of the learner's progress.
    It need not exist.
    """
    return Path(os.environ.get("WARPLAB_MINE") or COURSE / "mine")

"""Reading a run's model in the model's process: its last weights, or those of a checkpoint."""

from pathlib import Path
from typing import Any

from digits.files import DigitsError
from digits.look.errors import LookError
from digits.training import checkpoints, trained


def stamp(folder: Path, checkpoint: str | None) -> tuple[Any, ...]:
    """Return a value that changes when the weights of a checkpoint, or the last ones, may have changed."""
    weights = checkpoints.FOLDER if checkpoint is None else f"{checkpoints.FOLDER}/{checkpoint}.json"
    seen = [folder / trained.MODEL, folder / weights]
    return checkpoint, *(path.stat().st_mtime_ns if path.exists() else None for path in seen)


def read_model(folder: Path, checkpoint: str | None) -> Any:
    """Return the Keras model of a run, the last one or of a checkpoint. LookError if it cannot be read."""
    try:
        return trained.load_model(folder, checkpoint)
    except DigitsError:
        raise
    except Exception as error:  # Keras raises what it likes for a damaged file
        raise LookError(
            f"The run's model cannot be read ({type(error).__name__}: {_short(error)}). Choose another checkpoint, or "
            "train the run again."
        ) from error


def _short(error: Exception, most: int = 200) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= most else text[: most - 1] + "…"

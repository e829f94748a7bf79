"""The model's process: python -m digits.look.process RUN_FOLDER, started and asked by client.py.

Questions come as messages on standard input, answers leave on what was standard output; what TensorFlow prints goes to
standard error. It ends when its input ends, that is when the process that asked is gone, however it went.
"""

import contextlib
import os
import sys
import traceback
from pathlib import Path
from typing import BinaryIO

from digits.files import DigitsError
from warpcourse.processes.messages import BadMessage, read, reply, take_over


def main(arguments: list[str]) -> int:
    """Answer until the questions end."""
    (folder,) = arguments
    questions, answers = take_over()
    # On the CPU, so that a look takes nothing from a training that has the GPU to itself.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    with contextlib.suppress(BrokenPipeError):
        _answer(Path(folder), questions, answers)
    return 0


def _answer(folder: Path, questions: BinaryIO, answers: BinaryIO) -> None:
    from digits.look.questions import Questions
    from warpcourse.bench import tensorflow_start

    about: Questions | None = None
    while (question := read(questions, arrays=True)) is not None:
        message, arrays = question
        try:
            if about is None:
                tensorflow_start.start()
                about = Questions(folder)
            told, found = about.answer(
                message["ask"], message["given"], arrays, lambda share: reply(answers, {"progress": share})
            )
            reply(answers, {"answer": told}, found)
        except (DigitsError, BadMessage) as error:
            reply(answers, {"error": str(error)})
        except MemoryError:
            said = "The memory does not suffice for this question. Ask about fewer or smaller images."
            reply(answers, {"error": said})
        except BrokenPipeError:
            raise
        except Exception as error:
            traceback.print_exc()
            reply(answers, {"error": f"The model could not answer: {type(error).__name__}: {error}"[:2000]})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

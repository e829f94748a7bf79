"""The model's process: python -m digits.look.process RUN_FOLDER, started and asked by client.py.

Questions come as frames on standard input, answers leave as frames on what was standard output; what TensorFlow prints
goes to standard error. It ends when its input ends, that is when the process that asked is gone, however it went.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import BinaryIO

from digits.files import DigitsError
from digits.look.frames import BadFrame, pack, read


def main(arguments: list[str]) -> int:
    """Answer until the questions end."""
    (folder,) = arguments
    answers = os.fdopen(os.dup(1), "wb")
    questions = os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    # On the CPU, so that a look takes nothing from a training that has the GPU to itself.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    try:
        _answer(Path(folder), questions, answers)
    except (EOFError, BrokenPipeError):
        return 0
    return 0


def _answer(folder: Path, questions: BinaryIO, answers: BinaryIO) -> None:
    from digits.look.questions import Questions
    from warplab.bench import tensorflow_start

    def exactly(count: int) -> bytes:
        data = questions.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def send(frame: bytes) -> None:
        answers.write(frame)
        answers.flush()

    def progress(share: float) -> None:
        send(pack({"progress": share}))

    about: Questions | None = None
    while True:
        message, arrays = read(exactly)
        try:
            if about is None:
                tensorflow_start.start()
                about = Questions(folder)
            told, found = about.answer(message["ask"], message["given"], arrays, progress)
            frame = pack({"answer": told}, found)
        except (DigitsError, BadFrame) as error:
            frame = pack({"error": str(error)})
        except MemoryError:
            frame = pack({"error": "The memory does not suffice for this question. Ask about fewer or smaller images."})
        except BrokenPipeError:
            raise
        except Exception as error:
            traceback.print_exc()
            frame = pack({"error": f"The model could not answer: {type(error).__name__}: {error}"[:2000]})
        send(frame)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# problem: run
# loses: run-copies, run-adds
# reason: name 'run' is not defined

from kernels.collectives import interpreter
from kernels.collectives.answer_checks import Schedule, Send


def run(messages, arrays, slices):
    sends = [Send(*message) for message in messages]
    return interpreter.run(Schedule("all-reduce", len(arrays), slices, sends), arrays)

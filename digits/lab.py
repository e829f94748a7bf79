"""The record of lab 12."""

from warpcourse.bench.lab import Lab

LAB = Lab(
    __package__,
    "12_digits",
    "DIGITS: train, look inside and deploy, in one page",
    simulator=False,
    cpu=True,
    needs=("tensorboard", "tensorflow", "voila"),
    code_cells=82,
    pictures=12,
    shown={
        "digits-layers": "A digit that was taken for another, and what channels of two convolutions make of it",
        "digits-gradient": "Six mistakes, and which pixels speak for the wrong answer: gradient × input",
        "digits-jobs": "Browser, page's kernel and worker meet in the files of a run",
        "digits-resume": "The training loss of an unbroken run, and of one that was killed and resumed: the same line",
        "digits-scene": "A scene of digits on a textured ground, with their true boxes",
        "digits-segmented": "A scene, the class of each pixel, and the classes that the network gives",
    },
)

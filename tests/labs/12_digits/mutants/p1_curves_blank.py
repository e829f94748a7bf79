# problem: curves
# loses: curves-logged, curves-best, curves-own, curves-any
# reason: train is not written yet


def train(start, images, labels, held_images, held_labels, epochs, batch, rate):
    """Return (losses on images, losses on held_images): two lists with a number for each epoch."""


def best_epoch(validation):
    """Return the number of the epoch, from 1, with the lowest finite loss, the first of equal ones; 0 if none."""


def diagnose(train, validation, classes):
    """Return the word for these curves, by the table."""

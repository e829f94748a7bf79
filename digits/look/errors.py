"""What can go wrong inside a look: the model, its process, or the question."""

from digits.files import DigitsError


class LookError(DigitsError):
    """A question that has no answer. Its text says what was wrong and what to do, in words for the page."""

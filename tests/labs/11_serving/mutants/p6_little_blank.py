# problem: little
# loses: little-law, little-inside, little-capacity, little-limit
# reason: in_flight is not written yet


def in_flight(first, second):
    """Return the mean number of requests in the server between two readings (time, answered, seconds)."""


def mean_inside(trace, begin, end):
    """Return the mean number of requests in the server from begin to end; `trace`: (arrival, answer) of each, in ms."""


def capacity(batches, most):
    """Return the requests per second in batches of `most`; `batches`: (begin, end, requests) of some, in ms."""


def batch_limit(fixed, each, rate):
    """Return the smallest batch with which an engine answers `rate` requests per second; ValueError if none does."""

# problem: batcher
# loses: batcher-idle, batcher-busy, batcher-full
# reason: serve is not written yet


def serve(arrivals, wait, most, service, room):
    """Return what becomes of the requests: the batches, as (begin, requests), and the requests that were refused."""

# problem: batches
# loses: batches-pairs, batches-orders
# reason: not every image comes once


def batches(images, labels, batch, seed, epoch):
    """Return the batches of an epoch, a list of (images, labels), in an order drawn from seed and epoch."""
    order = np.random.default_rng([seed, epoch]).integers(0, len(images), len(images))
    parts = [order[i : i + batch] for i in range(0, len(order), batch)]
    return [(images[part], labels[part]) for part in parts]

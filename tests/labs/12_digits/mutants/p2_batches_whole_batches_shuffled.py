# problem: batches
# loses: batches-orders
# reason: the same images together


def batches(images, labels, batch, seed, epoch):
    """Return the batches of an epoch, a list of (images, labels), in an order drawn from seed and epoch."""
    whole = len(images) // batch * batch
    order = np.arange(whole).reshape(-1, batch)[np.random.default_rng([seed, epoch]).permutation(whole // batch)]
    parts = [*order, np.arange(whole, len(images))] if whole < len(images) else list(order)
    return [(images[part], labels[part]) for part in parts]

# problem: batches
# loses: batches-orders
# reason: the same images together


def batches(images, labels, batch, seed, epoch):
    """Return the batches of an epoch, a list of (images, labels), in an order drawn from seed and epoch."""
    rng, order = np.random.default_rng([seed, epoch]), np.arange(len(images))
    parts = [rng.permutation(order[i : i + batch]) for i in range(0, len(order), batch)]
    return [(images[part], labels[part]) for part in parts]

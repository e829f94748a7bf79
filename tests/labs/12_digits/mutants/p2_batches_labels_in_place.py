# problem: batches
# loses: batches-pairs, batches-orders
# reason: batches changes the arrays of the caller


def batches(images, labels, batch, seed, epoch):
    """Return the batches of an epoch, a list of (images, labels), in an order drawn from seed and epoch."""
    order = np.random.default_rng([seed, epoch]).permutation(len(images))
    images, labels[:] = images[order], labels[order]
    return [(images[i : i + batch], labels[i : i + batch].copy()) for i in range(0, len(images), batch)]

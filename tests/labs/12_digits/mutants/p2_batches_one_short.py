# problem: batches
# loses: batches-pairs, batches-orders
# reason: not every image comes once|the batches have wrong sizes


def batches(images, labels, batch, seed, epoch):
    """Return the batches of an epoch, a list of (images, labels), in an order drawn from seed and epoch."""
    order = np.random.default_rng([seed, epoch]).permutation(len(images))
    parts = [order[i : i + batch - 1] for i in range(0, len(order), batch)]
    return [(images[part], labels[part]) for part in parts]

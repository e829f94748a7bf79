# problem: batches
# loses: batches-pairs, batches-orders
# reason: the batches have wrong sizes


def batches(images, labels, batch, seed, epoch):
    """Return the batches of an epoch, a list of (images, labels), in an order drawn from seed and epoch."""
    order = np.random.default_rng([seed, epoch]).permutation(len(images))
    parts = np.array_split(order, -(-len(order) // batch))
    return [(images[part], labels[part]) for part in parts]

# problem: batches
# loses: batches-pairs, batches-orders
# reason: images have labels of others


def batches(images, labels, batch, seed, epoch):
    """Return the batches of an epoch, a list of (images, labels), in an order drawn from seed and epoch."""
    rng = np.random.default_rng(seed)
    rng.shuffle(images)
    rng.shuffle(labels)
    return [(images[i : i + batch], labels[i : i + batch]) for i in range(0, len(images) - batch + 1, batch)]

# problem: batches
# loses: batches-orders
# reason: the same seed and epoch give another order


def batches(images, labels, batch, seed, epoch):
    """Return the batches of an epoch, a list of (images, labels), in an order drawn from seed and epoch."""
    order = np.random.permutation(len(images))
    parts = [order[i : i + batch] for i in range(0, len(order), batch)]
    return [(images[part], labels[part]) for part in parts]

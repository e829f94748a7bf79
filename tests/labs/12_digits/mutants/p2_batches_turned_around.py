# problem: batches
# loses: batches-orders
# reason: batches: .* has the same batches


def batches(images, labels, batch, seed, epoch):
    """Return the batches of an epoch, a list of (images, labels), in an order drawn from seed and epoch."""
    order = np.roll(np.arange(len(images)), 0 if (seed + epoch) % 2 else 1)
    parts = [order[i : i + batch] for i in range(0, len(order), batch)]
    return [(images[part], labels[part]) for part in parts]

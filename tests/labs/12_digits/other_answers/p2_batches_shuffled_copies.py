def batches(images, labels, batch, seed, epoch):
    """Return the batches of an epoch, a list of (images, labels), in an order drawn from seed and epoch."""
    images, labels = images.copy(), labels.copy()
    np.random.default_rng([seed, epoch]).shuffle(images)
    np.random.default_rng([seed, epoch]).shuffle(labels)
    return [(images[i : i + batch], labels[i : i + batch]) for i in range(0, len(images), batch)]

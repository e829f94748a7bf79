def batches(images, labels, batch, seed, epoch):
    """Return the batches of an epoch, a list of (images, labels), in an order drawn from seed and epoch."""
    order = np.argsort(np.random.default_rng((epoch, seed)).random(len(images)))
    images, labels = images[order], labels[order]
    found = []
    while len(images):
        found.append((images[:batch], labels[:batch]))
        images, labels = images[batch:], labels[batch:]
    return found

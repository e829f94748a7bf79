# problem: curves
# loses: curves-logged, curves-own
# reason: train: number \d+ of the training losses is wrong


def train(start, images, labels, held_images, held_labels, epochs, batch, rate):
    """Return (losses on images, losses on held_images): two lists with a number for each epoch."""
    network, optimizer = network_of(start), keras.optimizers.SGD(rate)
    mean_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def step(x, t):
        with tf.GradientTape() as tape:
            loss = mean_of(t, network(x))
        optimizer.apply(tape.gradient(loss, network.trainable_variables), network.trainable_variables)
        return loss

    losses, held_losses = [], []
    for _ in range(epochs):
        steps = []
        for i in range(0, len(images), batch):
            part = slice(i, i + batch)
            steps.append(float(step(tf.constant(images[part]), tf.constant(labels[part]))))
        losses.append(sum(steps) / len(steps))
        held_losses.append(float(mean_of(held_labels, network(held_images))))
    return losses, held_losses


def best_epoch(validation):
    """Return the number of the epoch, from 1, with the lowest finite loss, the first of equal ones; 0 if none."""
    finite = [(loss, epoch) for epoch, loss in enumerate(validation, 1) if math.isfinite(loss)]
    return min(finite)[1] if finite else 0


def diagnose(train, validation, classes):
    """Return the word for these curves, by the table."""
    last, steps = train[-1], len(train) - 1
    if not all(map(math.isfinite, [*train, *validation])):
        return "rate too high"
    rises = sum(after > 1.05 * before for before, after in itertools.pairwise(train))
    if rises >= steps / 4:
        return "rate too high"
    if validation[-1] > 1.1 * min(validation) and last < validation[-1] / 2:
        return "overfits"
    if last > math.log(classes) / 4:
        return "too short" if last < 0.95 * train[-1 - len(train) // 4] else "too small"
    return "fits"

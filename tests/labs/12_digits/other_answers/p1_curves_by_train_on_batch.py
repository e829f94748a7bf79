def train(start, images, labels, held_images, held_labels, epochs, batch, rate):
    network = network_of(start)
    network.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    network.optimizer.learning_rate = rate
    train_losses, validation_losses = [], []
    for _ in range(epochs):
        for first in range(0, labels.size, batch):
            network.train_on_batch(images[first : first + batch], labels[first : first + batch])
        train_losses.append(network.evaluate(images, labels, batch_size=len(images), verbose=0))
        validation_losses.append(network.evaluate(held_images, held_labels, batch_size=17, verbose=0))
    return [train_losses, validation_losses]


def best_epoch(validation):
    losses = np.where(np.isfinite(validation), validation, np.inf)
    return 0 if np.isinf(losses).all() else losses.argmin() + 1


def diagnose(train, validation, classes):
    quarter = np.log(classes) / 4
    rises = [train[i] > 1.05 * train[i - 1] for i in range(1, len(train))]
    if not np.isfinite(train + validation).all() or sum(rises) / len(rises) >= 1 / 4:
        return "rate too high"
    if 1.1 * np.min(validation) < validation[-1] and train[-1] / validation[-1] < 1 / 2:
        return "overfits"
    if train[-1] > quarter and train[-1] < 0.95 * train[::-1][len(train) // 4]:
        return "too short"
    return "too small" if train[-1] > quarter else "fits"

def train(start, images, labels, held_images, held_labels, epochs, batch, rate):
    """Return (losses on images, losses on held_images): two lists with a number for each epoch."""
    network, found = network_of(start), ([], [])
    mean_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def look(epoch, logs):
        for losses, x, t in zip(found, (images, held_images), (labels, held_labels), strict=True):
            losses.append(float(mean_of(t, network(x))))

    network.compile(keras.optimizers.SGD(rate), mean_of)
    callback = keras.callbacks.LambdaCallback(on_epoch_end=look)
    network.fit(images, labels, batch, epochs, shuffle=False, verbose=0, callbacks=[callback])
    return found


def best_epoch(validation):
    best = 0
    for epoch, loss in enumerate(validation, 1):
        if math.isfinite(loss) and (not best or loss < validation[best - 1]):
            best = epoch
    return best


def diagnose(train, validation, classes):
    train, validation = np.array(train), np.array(validation)
    if not (np.isfinite(train).all() and np.isfinite(validation).all()):
        return "rate too high"
    if np.mean(train[1:] / train[:-1] > 1.05) >= 0.25:
        return "rate too high"
    if validation[-1] / validation.min() > 1.1 and 2 * train[-1] < validation[-1]:
        return "overfits"
    if 4 * train[-1] <= np.log(classes):
        return "fits"
    before = train[len(train) - 1 - len(train) // 4]
    return "too small" if train[-1] >= 0.95 * before else "too short"

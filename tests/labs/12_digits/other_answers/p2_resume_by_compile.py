def run(start, batches, rates, until, checkpoint=None):
    """Return (losses of the steps taken, checkpoint)."""
    network = network_of(start)
    network.compile(
        keras.optimizers.SGD(0.1, momentum=0.9), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    network.optimizer.build(network.trainable_variables)
    first = 0
    if checkpoint is not None:
        first = checkpoint["step"]
        network.set_weights(checkpoint["weights"])
        for variable, value in zip(network.optimizer.variables, checkpoint["optimizer"], strict=True):
            variable.assign(value)
    losses = []
    for step in range(first, until):
        network.optimizer.learning_rate = rates[step]
        images, labels = batches[step]
        losses.append(float(network.evaluate(images, labels, verbose=0)))
        network.train_on_batch(images, labels)
    kept = [np.array(variable.numpy()) for variable in network.optimizer.variables]
    return losses, {"weights": network.get_weights(), "optimizer": kept, "step": until}

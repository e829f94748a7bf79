# problem: resume
# loses: resume-once, resume-anywhere
# reason: the checkpoint holds too little to go on from
STATE = {}


def run(start, batches, rates, until, checkpoint=None):
    """Return (losses of the steps taken, checkpoint)."""
    network = network_of(STATE["weights"] if checkpoint else start)
    mean_of, optimizer = keras.losses.SparseCategoricalCrossentropy(from_logits=True), keras.optimizers.SGD(0.0, 0.9)
    optimizer.build(network.trainable_variables)
    if checkpoint:
        for variable, value in zip(optimizer.variables, STATE["optimizer"], strict=True):
            variable.assign(value)
    losses = []
    for step in range(checkpoint["step"] if checkpoint else 0, until):
        images, labels = batches[step]
        optimizer.learning_rate.assign(rates[step])
        with tf.GradientTape() as tape:
            loss = mean_of(labels, network(images))
        optimizer.apply(tape.gradient(loss, network.trainable_variables), network.trainable_variables)
        losses.append(float(loss))
    STATE.update(weights=network.get_weights(), optimizer=[variable.numpy() for variable in optimizer.variables])
    return losses, {"step": until}

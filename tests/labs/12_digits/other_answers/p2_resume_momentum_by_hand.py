def run(start, batches, rates, until, checkpoint=None):
    """Return (losses of the steps taken, checkpoint)."""
    state = checkpoint or {"weights": start, "momentum": [np.zeros_like(w) for w in start], "step": 0}
    network, momentum = network_of(state["weights"]), list(state["momentum"])
    mean_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    losses = []
    for (images, labels), rate in list(zip(batches, rates, strict=True))[state["step"] : until]:
        with tf.GradientTape() as tape:
            loss = mean_of(labels, network(images))
        gradients = tape.gradient(loss, network.trainable_variables)
        momentum = [
            np.float32(0.9) * v - np.float32(rate) * g.numpy() for v, g in zip(momentum, gradients, strict=True)
        ]
        network.set_weights([w + v for w, v in zip(network.get_weights(), momentum, strict=True)])
        losses.append(float(loss))
    return losses, {"weights": network.get_weights(), "momentum": momentum, "step": until}

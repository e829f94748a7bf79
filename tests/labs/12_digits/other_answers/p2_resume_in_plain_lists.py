def run(start, batches, rates, until, checkpoint=None):
    checkpoint = checkpoint or {"step": 0, "weights": start, "velocities": [0 * w for w in start]}
    network = network_of([np.array(w, np.float32) for w in checkpoint["weights"]])
    velocities, losses = [np.array(v, np.float32) for v in checkpoint["velocities"]], []
    variables = network.trainable_variables
    for (images, labels), rate in list(zip(batches, rates, strict=True))[checkpoint["step"] : until]:
        with tf.GradientTape() as tape:
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, network(images))
            loss = tf.reduce_mean(loss)
        for number, gradient in enumerate(tape.gradient(loss, variables)):
            velocities[number] = 0.9 * velocities[number] - rate * gradient.numpy()
            variables[number].assign_add(velocities[number])
        losses.append(loss.numpy())
    weights = [w.tolist() for w in network.get_weights()]
    return tuple(losses), {"step": until, "weights": weights, "velocities": [v.tolist() for v in velocities]}

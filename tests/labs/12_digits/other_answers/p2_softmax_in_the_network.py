def fit(start, images, labels, held_images, held_labels, epochs, rate):
    """Return the losses after each epoch, those of the held images, and the probabilities of these in the end."""
    network = keras.Sequential([network_of(start), keras.layers.Softmax()])
    mean_of, optimizer = keras.losses.SparseCategoricalCrossentropy(), keras.optimizers.SGD(rate)
    mean, deviation = images.mean(axis=0), images.std(axis=0) + 0.1
    x, held = (images - mean) / deviation, (held_images - mean) / deviation
    losses, held_losses = [], []
    for _ in range(epochs):
        with tf.GradientTape() as tape:
            loss = mean_of(labels, network(x))
        optimizer.apply_gradients(
            zip(tape.gradient(loss, network.trainable_variables), network.trainable_variables, strict=True)
        )
        losses.append(float(mean_of(labels, network(x))))
        held_losses.append(float(mean_of(held_labels, network(held))))
    return [losses, held_losses, network.predict(held, verbose=0)]

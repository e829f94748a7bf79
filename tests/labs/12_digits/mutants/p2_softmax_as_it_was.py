# problem: softmax
# loses: softmax-training, softmax-validation
# reason: fit: number \d+ of the training losses is wrong


def standardised(images):
    """Return the images with each pixel around 0."""
    return (images - images.mean(axis=0)) / (images.std(axis=0) + 0.1)


def cross_entropy(labels, scores):
    """The mean loss."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores))


def fit(start, images, labels, held_images, held_labels, epochs, rate):
    """Return the losses after each epoch, those of the held images, and the probabilities of these in the end."""
    network = keras.Sequential([network_of(start), keras.layers.Softmax()])
    images, held_images, optimizer = standardised(images), standardised(held_images), keras.optimizers.SGD(rate)
    losses, held_losses = [], []
    for _ in range(epochs):
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, network(images))
        optimizer.apply(tape.gradient(loss, network.trainable_variables), network.trainable_variables)
        losses.append(float(cross_entropy(labels, network(images))))
        held_losses.append(float(cross_entropy(held_labels, network(held_images))))
    return losses, held_losses, network(held_images).numpy()

# problem: softmax
# loses: softmax-training, softmax-validation
# reason: fit does not return three things


def standardised(images, training):
    """Return the images with each pixel around 0, as it is in the training images."""
    return (images - training.mean(axis=0)) / (training.std(axis=0) + 0.1)


def cross_entropy(labels, logits):
    """The mean loss."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


def fit(start, images, labels, held_images, held_labels, epochs, rate):
    """Return the losses after each epoch, those of the held images, and the probabilities of these in the end."""
    network, optimizer = network_of(start), keras.optimizers.SGD(rate)
    images, held_images = standardised(images, images), standardised(held_images, images)
    losses, held_losses = [], []
    for _ in range(epochs):
        with tf.GradientTape() as tape:
            loss = cross_entropy(labels, network(images))
        optimizer.apply(tape.gradient(loss, network.trainable_variables), network.trainable_variables)
        losses.append(float(cross_entropy(labels, network(images))))
        held_losses.append(float(cross_entropy(held_labels, network(held_images))))
    return losses, held_losses

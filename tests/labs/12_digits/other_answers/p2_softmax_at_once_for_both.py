def fit(start, images, labels, held_images, held_labels, epochs, rate):
    mean, deviation = np.mean(images, axis=0), np.std(images, axis=0)
    both = (np.concatenate([images, held_images]) - mean) / (deviation + np.float32(0.1))
    network, count, found = network_of(start), len(images), []
    network.compile(keras.optimizers.SGD(rate), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    for _ in range(epochs):
        network.train_on_batch(both[:count], labels)
        scores = network.predict_on_batch(both).astype(float)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        picked = -np.take_along_axis(logs, np.concatenate([labels, held_labels])[:, None], 1)[:, 0]
        found.append((picked[:count].mean(), picked[count:].mean()))
    return [a for a, _ in found], [b for _, b in found], np.exp(logs[count:]).astype(np.float32)

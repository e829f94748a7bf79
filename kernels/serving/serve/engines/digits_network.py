"""The lab's own network: handwritten digits through one hidden layer, in NumPy, trained and kept in a file of 20 kB.

A service must start in no time and need no framework. `python -m kernels.serving.serve.engines.digits_network` trains
it again, by gradient descent with momentum on all training images at once. Digits: scikit-learn's 1797 images of 8 × 8
pixels (Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI, 1998).
"""

from pathlib import Path

import numpy as np

TRAINED = Path(__file__).with_name("digits_network.npz")
IMAGE, CLASSES, HIDDEN = (1, 8, 8), 10, 64
SEED, TEST = 11, 360  # images for the test; the other 1437 train
STEPS, RATE, MOMENTUM = 300, 0.5, 0.9

Weights = dict[str, np.ndarray]


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (training images, labels, test images, labels): float32, (count, 1, 8, 8), 0 to 1; int64, (count,).

    Test images come from the same 13 writers as the others, so accuracies are no estimate for other writers.
    """
    # Here, since importing scikit-learn takes a second, and a service does not need it.
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32).reshape(-1, *IMAGE)
    order = np.random.default_rng(SEED).permutation(len(images))
    test, training = order[:TEST], order[TEST:]
    return images[training], labels[training], images[test], labels[test]


def load() -> Weights:
    """Return the trained weights: "hidden" (64, 64), "hidden_bias", "classes" (64, 10), "classes_bias"; float32."""
    with np.load(TRAINED, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def probabilities(weights: Weights, images: np.ndarray) -> np.ndarray:
    """Return softmax(relu(x · hidden + bias) · classes + bias), (images, 10), for x of (images, 1, 8, 8)."""
    x = images.reshape(len(images), -1)
    hidden = np.maximum(x @ weights["hidden"] + weights["hidden_bias"], 0)
    return _softmax(hidden @ weights["classes"] + weights["classes_bias"])


def accuracy(weights: Weights, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of images whose likeliest class is their label."""
    return float((probabilities(weights, images).argmax(axis=1) == labels).mean())


def trained(images: np.ndarray, labels: np.ndarray, steps: int = STEPS) -> Weights:
    """Return weights after so many steps down the gradient of the mean cross-entropy; always the same, float32."""
    random = np.random.default_rng(SEED)
    pixels = int(np.prod(IMAGE))
    weights = {
        "hidden": random.standard_normal((pixels, HIDDEN)) * np.sqrt(2 / pixels),
        "hidden_bias": np.zeros(HIDDEN),
        "classes": random.standard_normal((HIDDEN, CLASSES)) * np.sqrt(1 / HIDDEN),
        "classes_bias": np.zeros(CLASSES),
    }
    moving = {name: np.zeros_like(values) for name, values in weights.items()}
    x, wanted = images.reshape(len(images), -1).astype(np.float64), np.eye(CLASSES)[labels]
    for _ in range(steps):
        for name, slope in _gradient(weights, x, wanted).items():
            moving[name] = MOMENTUM * moving[name] - RATE * slope
            weights[name] += moving[name]
    return {name: values.astype(np.float32) for name, values in weights.items()}


def _gradient(weights: Weights, x: np.ndarray, wanted: np.ndarray) -> Weights:
    hidden = np.maximum(x @ weights["hidden"] + weights["hidden_bias"], 0)
    error = (_softmax(hidden @ weights["classes"] + weights["classes_bias"]) - wanted) / len(x)
    back = (error @ weights["classes"].T) * (hidden > 0)
    return {
        "hidden": x.T @ back,
        "hidden_bias": back.sum(axis=0),
        "classes": hidden.T @ error,
        "classes_bias": error.sum(axis=0),
    }


def _softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def main() -> None:
    """Train, print the test accuracy, and save."""
    images, labels, test_images, test_labels = digits()
    weights = trained(images, labels)
    right = accuracy(weights, test_images, test_labels)
    np.savez(TRAINED, **weights)
    print(f"{100 * right:.1f} % of {TEST} test images right; {TRAINED.name}: {TRAINED.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()

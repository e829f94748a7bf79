"""What a look finds, as HTML: every name escaped, every picture with words, right for few classes and for many."""

import html.parser
import re

import numpy as np
import pytest

from digits import look
from digits.look.answers import LayerOutput, LayerRow, LayerWeights, Model, Saliency
from digits.look.statistics import statistics
from digits.page import look_view
from tests.support.random_inputs import generator

EVIL = '"><script>alert(1)</script>'


class Reader(html.parser.HTMLParser):
    """Tags in the order in which they open, held to be closed in the reverse order; and all text."""

    VOID = ("img", "rect", "br", "hr")

    def __init__(self, markup):
        super().__init__()
        self.tags, self.open, self.words = [], [], []
        self.feed(markup)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def text(self):
        return " ".join("".join(self.words).split())

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def read(markup):
    reader = Reader(markup)
    assert not reader.all("script")
    for picture in reader.all("img"):
        assert len(picture["alt"]) > 8
        assert picture["src"].startswith("data:image/png;base64,")
    for picture in reader.all("svg"):
        assert picture["role"] == "img"
        assert picture["aria-label"]
    return reader


def drawn(classes, count, right):
    rng = generator()
    labels = rng.integers(0, len(classes), count)
    answered = np.where(rng.random(count) < right, labels, rng.integers(0, len(classes), count))
    probabilities = np.full((count, len(classes)), 0.2 / len(classes), np.float32)
    probabilities[np.arange(count), answered] += 0.8
    return look.Tested(probabilities, labels, np.arange(count), tuple(classes), "test")


def test_top_five_says_whether_the_answer_is_right():
    row = np.array([0.1, 0.7, 0.2], np.float32)
    right = read(look_view.top_five(row, ["a", EVIL, "c"], 1)).text()
    assert right.startswith(f"Right: the image is of class {EVIL}.")
    assert f"{EVIL} (true)70.0 %" in right
    assert "Wrong: the image is of class a." in read(look_view.top_five(row, ["a", EVIL, "c"], 0)).text()
    assert "Right" not in read(look_view.top_five(row, ["a", EVIL, "c"])).text()
    assert "diverged" in read(look_view.top_five(np.full(3, np.nan), ["a", EVIL, "c"])).text()


@pytest.mark.parametrize("classes", [2, 10, look_view.MOST_CLASSES])
def test_a_small_confusion_matrix_has_all_its_numbers(classes):
    found = drawn([f"{EVIL}{i}" for i in range(classes)], 300, 0.8)
    reader = read(look_view.tested(found))
    head = [attributes for attributes in reader.all("th") if attributes.get("scope") == "col"]
    assert len(head) == classes + 1 + 5
    assert len(reader.all("td")) == classes * classes + 4 * classes
    answered = found.probabilities.argmax(1)
    assert f"{(answered == found.labels).sum()} of 300 right" in reader.text()
    frames = [one for one in reader.all("span") if "look-right" in one.get("class", "")]
    assert len(frames) == len(set(found.labels[answered == found.labels]))


def test_a_large_confusion_matrix_is_drawn_and_its_most_frequent_confusions_listed():
    names = [f"class {i}" for i in range(look_view.MOST_CLASSES + 1)]
    matrix = np.diag(np.full(len(names), 9))
    matrix[3, 7], matrix[7, 3], matrix[20, 0] = 5, 2, 4
    reader = read(look_view.confusion(matrix, names))
    assert len(reader.all("img")) == 1
    assert "class 3class 75class 20class 04class 7class 32" in reader.text()
    assert len(reader.all("td")) == 3 * 2


def test_mistakes_are_shown_with_truth_and_answer():
    found = drawn(["a", EVIL], 40, 0.5)
    images = generator().integers(0, 256, (40, 8, 8, 3), np.uint8)
    reader = read(look_view.mistakes(found, images, most=4))
    wrong = (found.probabilities.argmax(1) != found.labels).sum()
    assert len(reader.all("img")) == min(4, wrong)
    assert re.search(r"test image \d+: true (a|.*script>), answered", reader.text())
    everything_right = drawn(["a", "b"], 10, 1.1)
    assert read(look_view.mistakes(everything_right, images)).text() == "No mistakes."


def layer(maps, weights=()):
    shape = maps.shape if maps.ndim == 1 else (*maps.shape[1:], len(maps))
    return LayerOutput(EVIL, "Conv2D", shape, 12, statistics(maps), len(maps), 1, maps, weights)


def test_layers_of_every_rank_are_laid_out():
    rng = generator()

    def kernel(*shape):
        tiles = rng.normal(size=shape).astype(np.float32)
        return LayerWeights(EVIL, tuple(reversed(shape)), statistics(tiles), tiles)

    bias = LayerWeights("bias", (5,), statistics(np.zeros(5)), None)
    found = [
        layer(rng.normal(size=(5, 6, 7)).astype(np.float32), (kernel(5, 1, 3, 3), bias)),
        layer(rng.random((33, 2, 2)).astype(np.float32), (kernel(33, 16, 3, 3),)),
        layer(rng.random(100).astype(np.float32), (kernel(1, 1, 40, 100),)),
        layer(np.full((2, 3, 3), np.nan, np.float32), (kernel(2, 3, 5, 5),)),
        LayerOutput("deep", "Conv3D", (2, 2, 2, 2), 0, statistics(np.zeros(16)), 2, 1, None),
    ]
    reader = read(look_view.layers(found))
    assert len(reader.all("img")) == 8
    assert len(reader.all("details")) == 5
    assert "The first 8 of 33 filters" in reader.text()
    assert "All 18 values are NaN or infinite" in reader.text()
    whole = read(look_view.layer(found[1]))
    assert "33 filters" in whole.text()
    assert "open" in whole.all("details")[0]


def test_models_saliency_and_many_images():
    about = Model("classification", (8, 8, 1), ("a",), 1234567, (LayerRow(EVIL, "Dense", (10,), 7),))
    assert "1,234,567 parameters, input 8 × 8 × 1" in read(look_view.model(about)).text()
    pixels = generator().integers(0, 256, (8, 8, 3), np.uint8)
    for method, words in (("gradient", "Gradient × input"), ("occlusion", "patch of 3 × 3 pixels")):
        found = Saliency(generator().normal(size=(8, 8)).astype(np.float32), 0, 0.5, method, 3)
        reader = read(look_view.saliency(pixels, found, [EVIL]))
        assert len(reader.all("img")) == 3
        assert words in reader.text()
    rows = read(look_view.many([(EVIL, pixels), ("b", pixels)], np.array([[0.25, 0.75], [np.nan, 1.0]]), ["x", EVIL]))
    assert f"{EVIL} 75.0 %, x 25.0 %" in rows.text()
    assert "x not a number" in rows.text()


def test_a_test_says_how_sure_its_accuracy_is():
    """269 images cannot tell 97 % from 98 %, which a bare percentage seems to."""
    labels = np.arange(269) % 7
    probabilities = np.full((269, 7), 0.05, np.float32)
    probabilities[np.arange(269), np.where(np.arange(269) < 8, (labels + 1) % 7, labels)] = 0.7
    found = look.Tested(probabilities, labels, np.arange(269), tuple("abcdefg"), "validation")
    said = read(look_view.tested(found)).text().replace("\N{NO-BREAK SPACE}", " ")
    assert "261 of 269 right (97.0 %), 95 % confidence interval 94.2 % to 98.5 %; " in said
    assert "of 269 among the top 5" in said
    loss = -(261 * np.log(0.7) + 8 * np.log(0.05)) / 269
    assert f"mean loss (cross-entropy) {loss:.3g} nats" in said


def test_top_five_of_five_classes_says_nothing():
    found = drawn(list("abcde"), 20, 0.5)
    assert "top 5" not in read(look_view.tested(found)).text()


def test_the_ends_of_a_saliency_map_say_for_and_against():
    pixels = np.zeros((2, 2, 1), np.uint8)
    both = read(look_view.saliency(pixels, Saliency(np.float32([[0, 2], [-1, 0]]), 0, 0.7, "gradient", 0), ["a"]))
    assert "dark blue is −2 (against), yellow 2 (for)" in both.text()
    never = read(look_view.saliency(pixels, Saliency(np.float32([[0, 2], [1, 0]]), 0, 0.7, "occlusion", 2), ["a"]))
    assert "dark blue is 0, yellow 2 (for)" in never.text()

"""Numbers as people type them, and how far a prediction is off."""

import pytest

from warpcourse.learner.numbers import difference, parse, show


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("32", 32),
        (" 12.5 ", 12.5),
        ("1,000", 1000),
        ("0,125", 0.125),
        ("1_000_000", 1_000_000),
        ("1 000", 1000),
        ("-3", -3),
        ("1e6", 1e6),
        (".5", 0.5),
        ("12 %", 12),
        ("4,5", 4.5),
        ("1,234.5", 1234.5),
        ("1/8", 0.125),
        ("2**20", 2**20),
        ("2^10", 1024),
    ],
)
def test_a_number_is_read_as_it_was_meant(text, number):
    assert parse(text) == number


NO_NUMBERS = ["", "many", "1/0", "1e999", "nan", "inf", "2**99999", "(-8)**0.5", "-8**0.5", "1 2", "__"]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_number_is_named(text):
    with pytest.raises(ValueError, match="is no number; type one such as"):
        parse(text)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (32.0, "32"),
        (1234567, "1,234,567"),
        (0.125, "0.125"),
        (3.14159, "3.14"),
        (99.99, "100"),
        (2345.6, "2,346"),
        (1e-7, "1e-07"),
        (1.5e20, "1.5e+20"),
    ],
)
def test_numbers_are_shown_short(number, text):
    assert show(number) == text


@pytest.mark.parametrize(
    ("predicted", "value", "sentence"),
    [
        (32, 32, "Exactly as you predicted."),
        (0, 0, "Exactly as you predicted."),
        (4, 32, "It is 8 times as much as you predicted."),
        (32, 4, "You predicted 8 times as much as it is."),
        (16, 32, "It is twice as much as you predicted."),
        (127, 100, "You predicted 27 % too much."),
        (128, 120, "You predicted 6.7 % too much."),
        (900, 1000, "Close enough: you predicted 10 % too little."),
        (100.4, 100, "Close enough: you predicted 0.4 % too much."),
        (16, 15, "You predicted 6.7 % too much."),
        (16, 15.2, "Close enough: you predicted 5.3 % too much."),
        (0, 5, "The two are 5 apart."),
        (-2, 3, "The two are 5 apart."),
        (-4, -32, "It is 8 times as much as you predicted."),
    ],
)
def test_the_sentence_on_the_difference(predicted, value, sentence):
    assert difference(predicted, value) == sentence


@pytest.mark.parametrize(
    ("predicted", "value", "sentence"),
    [
        (90, 123.5, "You predicted 33.5 points too little."),
        (12.5, 13.7, "Close enough: you predicted 1.2 points too little."),
        (100, 50, "You predicted 50 points too much."),
        (0, 1, "You predicted 1 point too little."),
    ],
)
def test_per_cent_differ_by_points(predicted, value, sentence):
    assert difference(predicted, value, "% of a copy") == sentence

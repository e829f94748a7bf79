"""Paths to classes and parts, in the layouts that people have."""

from __future__ import annotations

import pytest

from digits.data.layout import class_order, place, printable


def placed(*paths):
    found, skipped = place((path, tuple(path.split("/"))) for path in paths)
    return [(file.where, file.part, file.label) for file in found], [one["file"] for one in skipped]


def test_folder_per_class_at_any_depth():
    assert placed("cat/1.png", "cat/old/more/2.png", "dog/1.png") == (
        [("cat/1.png", "", "cat"), ("cat/old/more/2.png", "", "cat"), ("dog/1.png", "", "dog")],
        [],
    )


def test_folders_around_do_not_matter():
    found, skipped = placed("data/pets/cat/1.png", "data/pets/dog/1.png", "data/about.txt", "top.txt")
    assert found == [("data/pets/cat/1.png", "", "cat"), ("data/pets/dog/1.png", "", "dog")]
    assert skipped == ["about.txt", "top.txt"]


@pytest.mark.parametrize("names", [("train", "validation", "test"), ("Train", "val", "Testing")])
def test_folders_named_after_parts_are_these(names):
    train, validation, test = names
    found, skipped = placed(
        f"x/{train}/cat/1.png", f"x/{validation}/cat/2.png", f"x/{test}/dog/3.png", f"x/{train}/loose.png"
    )
    assert [(part, label) for _, part, label in found] == [("train", "cat"), ("validation", "cat"), ("test", "dog")]
    assert skipped == [f"{train}/loose.png"]


@pytest.mark.parametrize(
    "paths",
    [
        ["test/1.png", "cat/1.png"],  # a class that is called test
        ["train/1.png", "plane/1.png"],
        ["val/a/1.png", "test/a/1.png"],  # nothing to train on: these are classes
        ["train/a/1.png", "training/a/1.png"],  # not two parts
    ],
)
def test_other_names_are_classes(paths):
    found, _ = placed(*paths)
    assert [(part, label) for _, part, label in found] == [("", path.split("/")[0]) for path in paths]


def test_one_class_alone_is_its_own():
    assert placed("cat/1.png", "cat/2.png")[0] == [("cat/1.png", "", "cat"), ("cat/2.png", "", "cat")]


def test_what_programs_left_behind_is_not_mentioned():
    found, skipped = placed(
        "__MACOSX/cat/._1.png", "cat/.DS_Store", "cat/Thumbs.db", "cat/1.png", ".git/a/b", "d/2.png"
    )
    assert [where for where, _, _ in found] == ["cat/1.png", "d/2.png"]
    assert skipped == []


def test_nothing_is_placed_of_nothing():
    assert placed() == ([], [])
    assert placed("a.png", "b.png") == ([], ["a.png", "b.png"])


def test_names_are_made_printable():
    (found, _) = place([(0, ("ca\udcfft", "1\n.png")), (1, ("<b>", "ä.png"))])
    assert [(file.label, file.name) for file in found] == [("ca�t", "ca�t/1�.png"), ("<b>", "<b>/ä.png")]
    assert printable("a\x1b[31m\u202eb") == "a�[31m�b"


def test_numbers_in_class_names_count_as_numbers():
    names = ["10", "9", "b2", "b10", "b", "A", "a", "", "0"]
    assert sorted(names, key=class_order) == ["", "0", "9", "10", "A", "a", "b", "b2", "b10"]


def test_endless_names_are_refused():
    found, skipped = place([(0, ("9" * 60_000, "1.png")), (1, ("cat", "1.png")), (2, ("dog", "x" * 60_000))])
    assert [file.label for file in found] == ["cat", "dog"]
    assert [one["reason"] for one in skipped] == ["The class's name is longer than 100 characters."]
    assert max(len(found[1].name), len(skipped[0]["file"])) <= 300

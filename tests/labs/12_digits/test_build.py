"""Datasets built by a process of its own from folders, archives and uploads, good and bad."""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import subprocess
import sys
import zipfile
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from digits.data import build, building, images, split
from digits.data.build_options import BuildOptions
from digits.data.dataset import PARTS, Dataset
from digits.data.read_image import BadImage
from digits.files import DigitsError, read_json, write_json
from digits.workspace import Workspace
from tests.support.waiting import until
from warpcourse.paths import COURSE

OPTIONS = BuildOptions(height=6, width=8, channels=3, validation=0.25, test=0.25, seed=3)


@pytest.fixture
def space(tmp_path):
    return Workspace(tmp_path / "space")


@pytest.fixture
def inline(monkeypatch):
    """Build in this process: what is built is the same, and errors are seen."""
    monkeypatch.setattr(building, "launch", lambda folder, *_, **__: build.build(folder))


def png(grey, size=(8, 6)):
    stream = io.BytesIO()
    Image.new("L", size, grey).save(stream, "PNG")
    return stream.getvalue()


def pets(count=8):
    """Two classes; the grey level of each image tells which it is."""
    return {
        f"{label}/{index}.png": png(base + index)
        for label, base in (("cat", 0), ("dog", 100))
        for index in range(count)
    }


def folder_of(root, files):
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def zip_of(files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def greys(dataset):
    """The grey level of each image, by part."""
    return {part: dataset.images(part)[:, 0, 0, 0].tolist() for part in PARTS}


def test_folder_becomes_a_dataset_in_another_process(space, tmp_path):
    root = folder_of(tmp_path / "pets", pets() | {"cat/bad.png": b"no image", "about.txt": b"pets"})
    started = building.from_path(space, "Pets", root, OPTIONS)
    assert started.status in ("building", "ready")
    dataset = building.wait(space, started.id)
    assert (dataset.status, dataset.message, building.log(dataset)) == ("ready", "", "")
    assert dataset.classes == ("cat", "dog")
    assert dataset.counts == {"train": 8, "validation": 4, "test": 4}
    assert dataset.source == str(root)
    assert {one["file"]: one["reason"] for one in dataset.skipped} == {
        "about.txt": "In no class's folder. Put it into one, or leave it out.",
        "cat/bad.png": "No image in a format that is read: PNG, JPEG, BMP, GIF, PPM, TIFF, WEBP.",
    }
    for part in PARTS:
        for grey, label, name in zip(greys(dataset)[part], dataset.labels(part), dataset.names(part), strict=True):
            assert grey == 100 * label + int(name.split("/")[1].split(".")[0])
            assert name.startswith(dataset.classes[label])
    assert sorted(grey for part in greys(dataset).values() for grey in part) == [*range(8), *range(100, 108)]
    np.testing.assert_allclose(dataset.mean()[0, 0, 0], np.mean(greys(dataset)["train"]))
    assert {name for name in os.listdir(dataset.folder) if "unfinished" in name} == set()


@pytest.mark.usefixtures("inline")
def test_same_seed_same_dataset_whatever_the_source(space, tmp_path):
    root = folder_of(tmp_path / "pets", pets())
    first = building.from_path(space, "a", root, OPTIONS)
    (tmp_path / "pets.zip").write_bytes(zip_of({f"top/{name}": data for name, data in pets().items()}))
    second = building.from_path(space, "b", tmp_path / "pets.zip", OPTIONS)
    third = building.from_zip(space, "c", (tmp_path / "pets.zip").read_bytes(), OPTIONS)
    other = building.from_path(space, "d", root, BuildOptions(**{**asdict(OPTIONS), "seed": 4}))
    assert greys(first) == greys(second) == greys(third)
    assert greys(first) != greys(other)
    drawn = split.draw(np.repeat([0, 1], 8), 0.25, 0.25, 3)
    assert greys(first)["test"] == [index if index < 8 else 92 + index for index in drawn["test"]]


@pytest.mark.usefixtures("inline")
def test_uploaded_files_become_a_dataset_and_the_upload_goes(space):
    files = {label: [(f"../../{i}<b>.png", png(base + i)) for i in range(4)] for label, base in (("a b", 0), ("ü", 9))}
    dataset = building.from_files(space, "Uploaded", files, OPTIONS)
    assert dataset.status == "ready"
    assert dataset.classes == ("a b", "ü")
    assert sum(dataset.counts.values()) == 8
    assert not (dataset.folder / "upload.zip").exists()
    assert "a b/00002 2<b>.png" in [name for part in PARTS for name in dataset.names(part)]
    assert dataset.source == "upload of image files"


@pytest.mark.usefixtures("inline")
def test_parts_given_by_folders_are_kept(space, tmp_path):
    files = {f"train/{name}": data for name, data in pets().items()}
    files |= {"val/cat/v.png": png(50), "val/dog/w.png": png(150), "val/cow/x.png": png(200)}
    dataset = building.from_path(space, "a", folder_of(tmp_path / "pets", files), OPTIONS)
    assert dataset.counts == {"train": 12, "validation": 2, "test": 4}
    assert sorted(greys(dataset)["validation"]) == [50, 150]
    assert dataset.classes == ("cat", "dog")
    assert dataset.skipped[0] == {
        "file": "cow/",
        "reason": "The class is left out. 0 images to train on; a class needs 2.",
    }


@pytest.mark.usefixtures("inline")
def test_least_and_most_images_of_a_class(space, tmp_path):
    root = folder_of(tmp_path / "pets", pets(12) | {"cow/1.png": png(200), "cow/2.png": png(201), "cow/3.png": b""})
    options = BuildOptions(**{**asdict(OPTIONS), "least": 3, "most": 10})
    dataset = building.from_path(space, "a", root, options)
    assert dataset.classes == ("cat", "dog")
    assert sum(dataset.counts.values()) == 20
    again = building.from_path(space, "a", root, options)
    assert greys(again) == greys(dataset)


@pytest.mark.usefixtures("inline")
def test_filled_images_do_not_depend_on_their_neighbours(space, tmp_path):
    options = BuildOptions(8, 8, 1, "fill", 0.25, 0.25, 3)
    wide = {name: data for name, data in pets().items() if name != "cat/0.png"} | {"cat/0.png": png(7, (8, 2))}
    both = building.from_path(space, "a", folder_of(tmp_path / "a", wide), options)
    more = building.from_path(
        space, "b", folder_of(tmp_path / "b", wide | {"ant/1.png": png(1), "ant/2.png": png(2)}), options
    )

    def image(dataset):
        return next(
            dataset.images(part)[dataset.names(part).index("cat/0.png")]
            for part in PARTS
            if "cat/0.png" in dataset.names(part)
        )

    assert np.array_equal(image(both), image(more))
    assert len(np.unique(image(both))) > 10


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, r"holds no images in folders of classes\. Give one folder per class"),
        ({"1.png": png(0)}, r"1\.png was skipped: In no class's folder"),
        ({"cat/1.png": png(0), "cat/2.png": png(1)}, "images of the class 'cat' only"),
        (
            {"cat/1.png": b"x", "dog/1.png": b"x"},
            r"images of no class\. .* 4 files were skipped, the first, cat/1\.png: No image in a format",
        ),
        ({"cat/1.png": png(0), "dog/1.png": png(0)}, "a class needs 2"),
    ],
)
def test_folder_without_a_dataset_in_it_says_why(space, tmp_path, files, why):
    (tmp_path / "pets").mkdir()
    dataset = building.from_path(space, "a", folder_of(tmp_path / "pets", files), OPTIONS)
    assert dataset.status == "failed"
    assert re.search(why, dataset.message)
    assert not list(dataset.folder.glob("*.npy"))
    assert dataset.skipped_count == len(dataset.skipped)
    assert bool(dataset.skipped) == ("skipped" in dataset.message)
    with pytest.raises(DigitsError, match=r"is not ready \(failed\)"):
        dataset.images("train")
    assert [one.id for one in Dataset.list(space)] == [dataset.id]


def test_what_cannot_be_a_source_leaves_no_dataset(space, tmp_path):
    (tmp_path / "a.zip").write_bytes(b"no archive")
    for path, why in [
        ("", "Give the path"),
        (tmp_path / "nothing", "is not there"),
        (tmp_path / "a.zip", "is no zip archive"),
        ("a\0b", "Cannot use|is not there"),
        ("x" * 5000, "Cannot use|is not there"),
    ]:
        with pytest.raises(DigitsError, match=why):
            building.from_path(space, "a", path, OPTIONS)
    with pytest.raises(DigitsError, match=r"^photos\.zip is no zip archive"):
        building.from_zip(space, "a", b"no archive", OPTIONS, "photos.zip")
    one = [("1.png", png(0))]
    with pytest.raises(DigitsError, match="two classes at least"):
        building.from_files(space, "a", {"cat": one}, OPTIONS)
    for label in ("", "a/b", "..", "a\nb", "x" * 101, "a\\b"):
        with pytest.raises(DigitsError, match="class n"):
            building.from_files(space, "a", {"cat": one, label: one}, OPTIONS)
    assert os.listdir(space.datasets) == []


def test_upload_that_is_too_large_is_refused(space, monkeypatch):
    monkeypatch.setattr(building, "MOST_UPLOADED", 1000)
    with pytest.raises(DigitsError, match="Copy the images to this machine"):
        building.from_zip(space, "a", bytes(1001), OPTIONS)


@pytest.mark.usefixtures("inline")
def test_full_disk_is_foreseen_and_said(space, tmp_path, monkeypatch):
    root = folder_of(tmp_path / "pets", pets())
    monkeypatch.setattr(build.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 100}))
    dataset = building.from_path(space, "a", root, OPTIONS)
    assert dataset.status == "failed"
    assert "the disk has 0.0 GB. Choose smaller images" in dataset.message


@pytest.mark.usefixtures("inline")
def test_disk_that_fills_up_is_said_and_the_space_given_back(space, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    root = folder_of(tmp_path / "pets", pets())
    monkeypatch.setattr(build, "fit", full)
    dataset = building.from_path(space, "a", root, OPTIONS)
    assert dataset.status == "failed"
    assert "the disk is full. Delete" in dataset.message
    assert not list(dataset.folder.glob("*unfinished*"))


@pytest.fixture
def halted(monkeypatch):
    """The processes that build, each stopped by a signal as soon as it is started, before it has read anything."""
    jobs = []
    start = subprocess.Popen

    def start_halted(*arguments, **options):
        jobs.append(start(*arguments, **options))
        os.kill(jobs[-1].pid, signal.SIGSTOP)
        return jobs[-1]

    monkeypatch.setattr(subprocess, "Popen", start_halted)
    yield jobs
    for job in jobs:
        job.kill()
        job.wait()


@pytest.mark.usefixtures("inline")
def test_progress_rises_and_says_how_far_and_how_long(space, tmp_path, monkeypatch):
    noted = []
    monkeypatch.setattr(build, "_TOGETHER", 4)
    monkeypatch.setattr(
        build.BuildProgress, "__call__", lambda self, progress, message: noted.append((progress, message))
    )
    building.from_path(space, "a", folder_of(tmp_path / "pets", pets() | {"cat/bad.png": b""}), OPTIONS)
    shares = [progress for progress, _ in noted]
    assert shares == sorted(shares)
    assert shares[0] == 0
    reading = [message for _, message in noted if "read" in message]
    assert [message.split()[0] for message in reading] == ["4", "8", "12", "16", "17"]
    assert re.fullmatch(r"17 of 17 files read, 1 of them skipped, about 0 s to go\.", reading[-1])


def test_progress_is_written_every_half_second(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(build, "time", SimpleNamespace(monotonic=lambda: now[0]))
    note = build.BuildProgress(tmp_path, {"name": "pets"})
    written = []
    for step in range(100):
        now[0] = step / 50
        note(step / 100, "half")
        written.append(read_json(tmp_path / "dataset.json")["progress"])
    assert sorted(set(written)) == [0.0, 0.25, 0.5, 0.75]
    (tmp_path / "wanted").write_text("stop\n")
    with pytest.raises(build.Stopped, match="Stopped before it was done"):
        note(1.0, "done")


def test_stopped_job_ends_and_can_be_built_again(space, tmp_path, halted):
    root = folder_of(tmp_path / "pets", pets())
    started = building.from_path(space, "Pets", root, OPTIONS)
    assert started.status == "building"
    with pytest.raises(DigitsError, match="is being built"):
        started.delete()
    with pytest.raises(DigitsError, match=r"is building\. Only what failed"):
        building.again(space, started.id)
    building.stop(started)
    os.kill(halted[0].pid, signal.SIGCONT)
    stopped = building.wait(space, started.id)
    assert stopped.status == "failed"
    assert stopped.message.startswith("Stopped before it was done")
    assert not list(stopped.folder.glob("*.npy"))
    building.again(space, stopped.id)
    os.kill(halted[1].pid, signal.SIGCONT)
    again = building.wait(space, stopped.id)
    assert again.status == "ready"
    assert again.name == "Pets"
    building.stop(again)
    assert not (again.folder / "wanted").exists()
    with pytest.raises(DigitsError, match=r"is ready\. Only what failed"):
        building.again(space, again.id)


def test_killed_job_is_seen_and_built_again(space, tmp_path, halted):
    root = folder_of(tmp_path / "pets", pets())
    started = building.from_path(space, "Pets", root, OPTIONS)
    halted[0].kill()
    until(lambda: Dataset.open(space, started.id).status == "killed")
    assert "was killed. Build it again" in Dataset.open(space, started.id).message
    building.again(space, started.id)
    os.kill(halted[1].pid, signal.SIGCONT)
    assert building.wait(space, started.id).status == "ready"


START_AND_DIE = """
import os, signal, sys
from digits.data import building
from digits.data.build_options import BuildOptions
from digits.workspace import Workspace
building.from_path(Workspace(sys.argv[1]), "Pets", sys.argv[2], BuildOptions(height=6, width=8))
os.killpg(os.getpgid(0), signal.SIGKILL)  # as a server ends a page's kernel, with what it has started
"""


def test_job_outlives_the_process_that_started_it(space, tmp_path):
    root = folder_of(tmp_path / "pets", pets())
    page = subprocess.run([sys.executable, "-c", START_AND_DIE, space.root, root], start_new_session=True, cwd=COURSE)
    assert page.returncode == -signal.SIGKILL
    (started,) = Dataset.list(space)
    assert building.wait(space, started.id).status == "ready"


@pytest.mark.usefixtures("inline")
def test_unforeseen_error_is_said_and_nothing_is_left(space, tmp_path, monkeypatch):
    def broken(*_):
        raise RuntimeError("what")

    monkeypatch.setattr(build, "place", broken)
    root = folder_of(tmp_path / "pets", pets())
    with pytest.raises(RuntimeError):
        building.from_path(space, "a", root, OPTIONS)
    assert os.listdir(space.datasets) == []


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"height": 0}, "from 1 to 1024"),
        ({"width": 8.5}, "width is 8.5. Give a whole number"),
        ({"channels": 4}, "1 for grey or 3 for colour"),
        ({"resize": "stretch"}, "no resize mode"),
        ({"validation": 0.5, "test": 0.5}, "left to train on"),
        ({"test": "a lot"}, "Give a share"),
        ({"seed": -1}, "seed is -1"),
        ({"least": 0}, "1 image at least"),
        ({"least": 5, "most": 4}, "no class has both"),
        ({"seed": True}, "seed is True"),
    ],
)
def test_options_that_make_no_sense_are_refused(wrong, why):
    with pytest.raises(DigitsError, match=why):
        BuildOptions(**wrong)


def test_damaged_options_are_said():
    with pytest.raises(DigitsError, match="options are damaged"):
        BuildOptions.from_dict({"colour": 3})


@pytest.mark.usefixtures("inline")
def test_one_image_is_brought_to_what_the_dataset_has(space, tmp_path):
    dataset = building.from_path(space, "a", folder_of(tmp_path / "pets", pets()), OPTIONS)
    image = images.one(png(77, (31, 9)), dataset)
    assert image.shape == dataset.shape
    assert (image == 77).all()
    with pytest.raises(BadImage, match="No image"):
        images.one(b"text", dataset)


def test_recipe_of_somebody_else_costs_no_file(space, tmp_path, inline):
    """A dataset that was copied may name any file as its upload; building it again deletes its own upload alone."""
    own = tmp_path / "photos.zip"
    with zipfile.ZipFile(own, "w") as archive:
        for name, data in pets().items():
            archive.writestr(name, data)
    folder = space.create("datasets", "copied")
    described = building._description("copied", folder.name, OPTIONS, "upload of photos.zip")
    write_json(folder / "dataset.json", {**described, "status": "failed"})
    recipe = {"kind": "zip", "path": str(own), "uploaded": True, "options": asdict(OPTIONS)}
    write_json(folder / "build.json", recipe)
    assert building.again(space, folder.name).status == "failed"
    assert own.is_file()
    (folder / build.UPLOAD).write_bytes(own.read_bytes())
    assert building.again(space, folder.name).status == "ready"
    assert own.is_file()
    assert not (folder / build.UPLOAD).exists()

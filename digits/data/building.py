"""Datasets of a folder, an archive or uploaded files: a process of its own builds each, and outlives the page."""

import io
import os
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from digits.data.build import UPLOAD, clear
from digits.data.build_options import BuildOptions
from digits.data.dataset import Dataset, describe
from digits.data.folder_source import FolderSource
from digits.data.layout import LONGEST_CLASS, printable
from digits.data.zip_source import ZipSource
from digits.files import DigitsError, Lock, delete_folder, explained, is_locked, read_json, write_file, write_json
from digits.jobs import LOCK, WANTED, Job, launch, write_wanted
from digits.workspace import Workspace

MOST_UPLOADED = 512 << 20  # bytes of one upload


def from_path(workspace: Workspace, name: str, path: str | os.PathLike[str], options: BuildOptions) -> Dataset:
    """Start building a dataset of the folder, or the .zip file, at `path` on this machine; return it as it is now.

    Raises DigitsError if nothing can be read there.
    """
    if not str(path).strip():
        raise DigitsError("Give the path of a folder that holds one folder per class, or of a .zip file.")
    with explained(f"use {path}"):
        place = Path(str(path).strip()).expanduser().absolute()
        kind = "zip" if place.is_file() else "folder"
    (ZipSource if kind == "zip" else FolderSource)(place).close()
    return _start(workspace, name, options, str(place), kind)


def from_zip(workspace: Workspace, name: str, data: bytes, options: BuildOptions, source: str = UPLOAD) -> Dataset:
    """Start building a dataset of an uploaded archive, of which `source` is the name; return it as it is now."""
    _check_upload(len(data))
    check_archive(source, data)
    return _start(workspace, name, options, f"upload of {printable(source)}", upload=bytes(data))


def from_files(
    workspace: Workspace, name: str, files: Mapping[str, Sequence[tuple[str, bytes]]], options: BuildOptions
) -> Dataset:
    """Start building a dataset of uploaded files, given by class as (file name, content); return it as it is now."""
    for label in files:
        check_class_name(label)
    if len(files) < 2:
        raise DigitsError("Upload images of two classes at least.")
    _check_upload(sum(len(data) for several in files.values() for _, data in several))
    return _start(workspace, name, options, "upload of image files", upload=files)


def check_class_name(name: str) -> None:
    """Raise DigitsError unless `name` can be a class's name."""
    if not name.strip() or len(name) > LONGEST_CLASS:
        raise DigitsError(f"A class needs a name, of at most {LONGEST_CLASS} characters.")
    if name != printable(name) or name.startswith(".") or set(name) & set('/\\:"'):
        raise DigitsError(f'The class name {printable(name)!r}: leave out / \\ : " and a leading full stop.')


def check_archive(name: str, data: bytes) -> None:
    """Raise DigitsError unless `data` looks like a zip archive; `name` is what the user calls it."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise DigitsError(f"{printable(name)} is no zip archive, or a damaged one. Choose a .zip file.")


def stop(dataset: Dataset) -> None:
    """Ask the process that builds `dataset` to end; it does so after the images it is at. Nothing happens if it has."""
    described = read_json(dataset.folder / "dataset.json")
    if described.get("status") == "building" and is_locked(dataset.folder / LOCK):
        write_wanted(dataset.folder, "stop")


def again(workspace: Workspace, id: str) -> Dataset:
    """Build a dataset anew that was stopped, killed, or that failed; return it as it is now.

    Raises DigitsError if it is being built, is ready, or if what it was built from is no longer there.
    """
    dataset = Dataset.open(workspace, id)
    if dataset.status not in ("failed", "killed"):
        raise DigitsError(f"{dataset.name} is {dataset.status}. Only what failed or was stopped is built again.")
    folder = dataset.folder
    options = BuildOptions.from_dict(read_json(folder / "build.json").get("options", {}))
    with Lock(folder / LOCK) as lock:
        clear(folder)
        _run(folder, lock, _description(dataset.name, folder.name, options, dataset.source))
    return Dataset.open(workspace, id)


def wait(workspace: Workspace, id: str, timeout: float = 600.0) -> Dataset:
    """Return the dataset as soon as it is no longer being built. Raises DigitsError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while (dataset := Dataset.open(workspace, id)).status == "building":
        if time.monotonic() > deadline:
            raise DigitsError(f"{dataset.name} is still being built after {timeout:g} s ({dataset.progress:.0%}).")
        time.sleep(0.05)
    return dataset


def log(dataset: Dataset) -> str:
    """Return what the process that built `dataset` printed: errors that nobody had foreseen."""
    return Job(dataset.folder).log()


def _check_upload(size: int) -> None:
    if size > MOST_UPLOADED:
        raise DigitsError(
            f"An upload of {size / 1e6:.0f} MB; {MOST_UPLOADED / 1e6:.0f} MB is the most. "
            "Copy the images to this machine and give their folder instead."
        )


def _description(name: str, id: str, options: BuildOptions, source: str) -> dict[str, object]:
    shape = (options.height, options.width, options.channels)
    return describe(
        id, name, "classification", (), shape, seed=options.seed, source=printable(source), resize=options.resize
    )


def _start(
    workspace: Workspace,
    name: str,
    options: BuildOptions,
    source: str,
    kind: str = "zip",
    upload: bytes | Mapping[str, Sequence[tuple[str, bytes]]] | None = None,
) -> Dataset:
    """Create the dataset's folder, put the upload into it, if there is one, and start the process."""
    folder = workspace.create("datasets", name)
    try:
        with Lock(folder / LOCK) as lock:
            if isinstance(upload, bytes):
                write_file(folder / UPLOAD, lambda stream: stream.write(upload))
                ZipSource(folder / UPLOAD).close()
            elif upload is not None:
                write_file(folder / UPLOAD, lambda stream: _pack(stream, upload))
            path = source if upload is None else str(folder / UPLOAD)
            recipe = {"kind": kind, "path": path, "uploaded": upload is not None, "options": asdict(options)}
            write_json(folder / "build.json", recipe)
            _run(folder, lock, _description(name, folder.name, options, source))
    except BaseException:
        delete_folder(folder)
        raise
    return Dataset.open(workspace, folder.name)


def _pack(stream: object, files: Mapping[str, Sequence[tuple[str, bytes]]]) -> None:
    with zipfile.ZipFile(stream, "w") as archive:  # type: ignore[call-overload]
        for label, several in files.items():
            for index, (name, data) in enumerate(several):
                plain = printable(name).replace("\\", "/").rsplit("/", 1)[-1]
                archive.writestr(f"{label}/{index:05d} {plain}", data)


def _run(folder: Path, lock: Lock, description: dict[str, object]) -> None:
    """Start the process that builds; it inherits the lock, so that from now until its end the dataset is locked."""
    (folder / WANTED).unlink(missing_ok=True)
    write_json(folder / "dataset.json", description)
    launch(folder, lock, "digits.data.build", "start the process that builds the dataset", anew=True)

"""The questions that the model's process answers: it reads the run, and holds its model."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from digits.data.dataset import Dataset
from digits.files import DigitsError, read_json
from digits.look import layers, saliency
from digits.look.answers import Message, Model, Saliency, Tested, packed
from digits.look.errors import LookError
from digits.look.reading import read_model, stamp
from digits.look.words import shape
from digits.training.task import prepare
from digits.workspace import Workspace

BATCH = 64
Progress = Callable[[float], None]


class Questions:
    """Answers questions about the run in `folder`. One model is held, and read again when its file changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: tuple[Any, Any] | None = None  # stamp, model
        spec = read_json(folder / "run.json")
        self._kind, self._dataset_id = str(spec.get("kind")), str(spec.get("dataset"))

    def answer(
        self, ask: str, given: Mapping[str, Any], arrays: Mapping[str, np.ndarray], progress: Progress
    ) -> Message:
        """Return the answer to a question as JSON and arrays. LookError or DigitsError if there is none."""
        checkpoint = given.get("checkpoint")
        if ask == "model":
            return packed(self._describe(checkpoint))
        if ask == "classify":
            return {}, {"probabilities": self._probabilities(checkpoint, arrays["images"], progress)}
        if ask == "predict":
            return {}, self._outputs(checkpoint, arrays["images"], progress)
        if ask == "layers":
            return packed(self._layers(checkpoint, arrays["image"], given.get("name")))
        if ask == "saliency":
            return packed(self._saliency(checkpoint, arrays["image"], given["label"], given["method"], progress))
        if ask == "test":
            return packed(self._test(checkpoint, given["part"], given.get("images"), progress))
        raise LookError(f"There is no question {ask!r}.")

    def _model(self, checkpoint: str | None) -> Any:
        now = stamp(self._folder, checkpoint)
        if self._held is None or self._held[0] != now:
            self._held = None  # free the old one before the new one is read
            self._held = now, read_model(self._folder, checkpoint)
        return self._held[1]

    def _dataset(self) -> Dataset:
        return Dataset.open(Workspace(self._folder.parent.parent), self._dataset_id)

    def _classes(self, model: Any) -> tuple[str, ...]:
        """Return the classes' names, or their numbers if the dataset was deleted since."""
        try:
            return self._dataset().classes
        except DigitsError:
            units = model.outputs[0].shape[-1]
            return tuple(map(str, range(int(units or 0)))) if self._kind == "classification" else ()

    def _describe(self, checkpoint: str | None) -> Model:
        model = self._model(checkpoint)
        height, width, channels = model.inputs[0].shape[1:]
        return Model(
            kind=self._kind,
            input=(int(height), int(width), int(channels)),
            classes=self._classes(model),
            parameters=int(model.count_params()),
            layers=layers.rows(model),
        )

    def _prepared(self, model: Any, images: np.ndarray) -> np.ndarray:
        """Return uint8 images as the network takes them, as in training."""
        wanted = tuple(model.inputs[0].shape[1:])
        if images.ndim != 4 or images.dtype != np.uint8 or tuple(images.shape[1:]) != wanted:
            raise LookError(
                f"The network takes images of {shape(wanted)} (height, width, channels) in uint8; these are "
                f"{shape(images.shape[1:])} in {images.dtype}. Bring them to the dataset's size first."
            )
        return prepare(images)

    def _outputs(self, checkpoint: str | None, images: np.ndarray, progress: Progress) -> dict[str, np.ndarray]:
        import keras

        model = self._model(checkpoint)
        self._prepared(model, images[:1])
        parts: dict[str, list[np.ndarray]] = {}
        for first in range(0, len(images), BATCH):
            out = model(self._prepared(model, np.asarray(images[first : first + BATCH])), training=False)
            named = out if isinstance(out, dict) else dict(zip(_output_names(model), _listed(out), strict=True))
            for name, value in named.items():
                value = keras.ops.convert_to_numpy(keras.ops.cast(value, "float32"))
                parts.setdefault(name, []).append(value)
            progress(min(1.0, (first + BATCH) / len(images)))
        return {name: np.concatenate(values) for name, values in parts.items()}

    def _probabilities(self, checkpoint: str | None, images: np.ndarray, progress: Progress) -> np.ndarray:
        if self._kind != "classification":
            raise LookError(
                f"This run's kind is {self._kind}: it answers no class for a whole image. Test it under Scenes; "
                "its layers can be looked at here."
            )
        outputs = next(iter(self._outputs(checkpoint, images, progress).values()))
        classes = len(self._classes(self._model(checkpoint)))
        if outputs.shape[1:] != (classes,):
            raise LookError(
                f"The network answers {outputs.shape[1:]} numbers per image, and the dataset has {classes} classes. "
                "Train it on this dataset again."
            )
        return outputs

    def _layers(self, checkpoint: str | None, image: np.ndarray, name: str | None) -> list[Any]:
        model = self._model(checkpoint)
        try:
            return layers.of_image(model, self._prepared(model, image[None]), name)
        except KeyError:
            raise LookError(f"The network has no layer {name!r}. It has {_some(layers.rows(model))}.") from None

    def _saliency(
        self, checkpoint: str | None, image: np.ndarray, label: int | None, method: str, progress: Progress
    ) -> Saliency:
        probabilities = self._probabilities(checkpoint, image[None], lambda share: None)[0]
        if label is None:
            label = int(np.argmax(np.nan_to_num(probabilities, nan=-1.0)))
        if not 0 <= label < len(probabilities):
            raise LookError(f"There is no class {label}; classes are counted from 0 to {len(probabilities) - 1}.")
        if not np.isfinite(probabilities).all():
            raise LookError(
                "The network answers NaN (no number): its training has diverged, and nothing can be said about its "
                "reasons. Choose an earlier checkpoint, or train with a lower rate."
            )
        model = self._model(checkpoint)
        prepared = self._prepared(model, image[None])
        patch = 0
        if method == "gradient":
            values = saliency.gradient_times_input(model, prepared, label)
        elif method == "occlusion":
            ask = _first_output(model)
            values, patch = saliency.occlusion(ask, prepared, label, progress)
        else:
            raise LookError(f'There is no method {method!r} of saliency; there are "gradient" and "occlusion".')
        return Saliency(values, label, float(probabilities[label]), method, patch)

    def _test(self, checkpoint: str | None, part: str, most: int | None, progress: Progress) -> Tested:
        dataset = self._dataset()
        images, labels = dataset.images(part), np.asarray(dataset.labels(part))
        if not len(labels):
            raise LookError(f"The dataset has no {part} images. Choose another part, or build it with another split.")
        indices = np.arange(len(labels), dtype=np.int64)
        if most is not None and most < len(indices):
            # Spread over the part, which may be sorted by class.
            indices = indices[np.linspace(0, len(indices) - 1, most).astype(np.int64)]
            images = np.asarray(images[indices])
        probabilities = self._probabilities(checkpoint, images, progress)
        return Tested(probabilities, labels[indices], indices, dataset.classes, part)


def _first_output(model: Any) -> Callable[[np.ndarray], np.ndarray]:
    import keras

    def ask(prepared: np.ndarray) -> np.ndarray:
        first = _listed(model(prepared, training=False))[0]
        return keras.ops.convert_to_numpy(keras.ops.cast(first, "float32"))

    return ask


def _output_names(model: Any) -> list[str]:
    return list((getattr(model, "_functional", None) or model).output_names)


def _listed(out: Any) -> list[Any]:
    if isinstance(out, dict):
        return list(out.values())
    return list(out) if isinstance(out, list | tuple) else [out]


def _some(rows: Any, most: int = 8) -> str:
    names = [row.name for row in rows]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")

"""A part of the deploy panel: a plan is served, asked for test images or uploaded ones by HTTP, and stopped."""

from typing import Any

import numpy as np

from digits.data import images
from digits.data.dataset import Dataset
from digits.deploy import plans, service
from digits.files import DigitsError
from digits.page import deploy_view, look_view
from digits.page.elements import button, check, column, escape, integer, note, row, upload
from digits.training.task import prepare


class ServicePart:
    """Serves the plan that the deploy panel has chosen. One service at a time."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.running: service.RunningService | None = None
        self._plan = ""
        self._done = self._busy = False
        self._serve = button("Serve this plan", page.guarded(self._start), kind="primary")
        self._stop = button("Stop serving", page.guarded(self._end))
        self._about, self._shown, self._answer = note(""), note(""), note("")
        self._index = integer("Test image", 0, 0, 0)
        self._ask_test = button("Ask about the test image", page.guarded(self._ask_about_test), kind="primary")
        self._upload = upload("Ask about an image of yours", accept="image/*")
        self._invert = check("Invert my image (swap light and dark)")
        self._asking = column(
            row(self._index, self._ask_test), row(self._upload, self._invert), row(self._shown, self._answer)
        )
        self.widget = column(row(self._serve, self._stop), self._about, self._asking)
        self._upload.observe(page.guarded(self._ask_about_upload), "value")
        self._show()

    def choose(self, plan: str, done: bool) -> None:
        """Note which plan the panel shows now, an ID or "". `done`: whether it can be served."""
        if (plan, done) != (self._plan, self._done):
            self._plan, self._done = plan, done
            self._show()

    def _show(self) -> None:
        serving, missing = self.running is not None, service.missing()
        self._serve.disabled = self._busy or serving or not self._done or bool(missing)
        self._stop.disabled = self._busy or not serving
        self._asking.layout.display = None if serving else "none"
        if self.running is not None:
            dataset = self._dataset()
            self._index.max = max(dataset.counts["test"] - 1, 0)
            sample = prepare(dataset.images("test")[:1])[0]
            self._about.value = f"<p>Serving {escape(self.running.plan)}.</p>" + deploy_view.request(
                self.running.url, sample, dataset.classes
            )
        elif not self._busy:
            why = missing or ("" if self._done else "Choose a plan that is done.")
            self._about.value = f'<p class="digits-muted">{escape(why)}</p>' if why else ""

    def _start(self) -> None:
        workspace, plan = self.page.workspace, self._plan
        self._busy = True
        self._show()
        self._about.value = '<p role="status">Starting: kernels are compiled, which takes some seconds.</p>'

        def started(running: service.RunningService) -> None:
            self.running = running
            self.page.say(f"The plan is served at {running.url}.")

        self.page.in_background(lambda: service.start(workspace, plan), started, self._rest)

    def _end(self) -> None:
        running, self._busy = self._served(), True
        self._show()

        def ended(counts: dict[str, int]) -> None:
            self.page.say(f"Stopped: {counts.get('answered', 0)} of {counts.get('accepted', 0)} images were answered.")

        def end() -> None:
            self.running = None
            self._shown.value = self._answer.value = ""
            self._rest()

        self.page.in_background(running.stop, ended, end)

    def _rest(self) -> None:
        self._busy = False
        self._show()

    def _served(self) -> service.RunningService:
        if self.running is None:
            raise DigitsError("Nothing is served. Choose a plan that is done, and serve it.")
        return self.running

    def _dataset(self) -> Dataset:
        """Return the dataset of the plan that is served."""
        about = plans.open(self.page.workspace, self._served().plan).about
        return Dataset.open(self.page.workspace, about["dataset"])

    def _ask_about_test(self) -> None:
        dataset, index = self._dataset(), self._index.value
        if index >= dataset.counts["test"]:
            raise DigitsError(f"There is no test image {index}; the dataset has {dataset.counts['test']}.")
        truth = int(dataset.labels("test")[index])
        self._ask(np.array(dataset.images("test")[index]), f"test image {index}", truth, dataset)

    def _ask_about_upload(self, change: Any) -> None:
        if not change["new"]:
            return
        (given,) = change["new"]
        self._upload.value = ()
        dataset = self._dataset()
        pixels = images.one(bytes(given["content"]), dataset)
        self._ask(255 - pixels if self._invert.value else pixels, given["name"], None, dataset)

    def _ask(self, pixels: np.ndarray, name: str, truth: int | None, dataset: Dataset) -> None:
        running = self._served()

        def answered(rows: np.ndarray) -> None:
            self._shown.value = f"<figure>{look_view.image(pixels, f'The {name}', '10rem')}</figure>"
            said = f"<p>POST {escape(running.url)}/v1/predict answered for {escape(name)}:</p>"
            self._answer.value = said + look_view.top_five(rows[0], dataset.classes, truth)

        self.page.in_background(lambda: running.ask(prepare(pixels[None])), answered)

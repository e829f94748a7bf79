"""Deploying: a run becomes a plan of lab 09, which is compared with Keras, downloaded, and served as in lab 11."""

from typing import Any

from digits.data.dataset import Dataset
from digits.deploy import onnx_export, plans
from digits.files import DigitsError
from digits.page import deploy_view
from digits.page.deploy_service import ServicePart
from digits.page.elements import button, check, choice, column, escape, integer, note, row, said, section, text
from digits.page.panel import Deletion, Panel
from digits.training import runs, trained

EVERY = 1.0  # seconds between two looks at the plans


class DeployPanel(Panel):
    """Builds plans of `page.selected.run`, shows them, and serves one."""

    title = "Deploy"

    def __init__(self, page: Any) -> None:
        self.page = page
        self._seen: Any = None  # of the plan that is shown
        self._run = choice("Run")
        self._precision = choice("Precision", [(title, name) for name, title in plans.PRECISIONS.items()])
        self._batches = text("Batches", "1, 8")
        self._calibration = choice("Calibration", plans.CALIBRATIONS)
        self._images = integer("Test images, at most", 256, 1, 1_000_000)
        self._tuned = check("Tune: time every tactic of every layer", True)
        self._build = button("Build the plan", page.guarded(self._start), kind="primary")
        self._model = button("Offer the Keras model", page.guarded(self._offer_model))
        self._onnx = button("Export to ONNX", page.guarded(self._export))
        self._model_links = note("")
        self._plan = choice("Plan")
        for wide in (self._run, self._plan):
            wide.layout.max_width = "44rem"
        self._state, self._report, self._links = note(""), note(""), note("")
        self._stop = button("Stop building", page.guarded(lambda: self._chosen().stop()))
        self._offer_files = button("Offer the plan files", page.guarded(self._offer_plan))
        self._deletion = Deletion(page, lambda: f"Delete the plan {self._chosen().id} for good?", self._delete_plan)
        self.service = ServicePart(page)
        where = plans.missing() or (
            "A plan is the network as it is to run: layers fused into fewer kernels, numbers of fewer bits if you "
            "like, and for each layer the fastest of several kernels. Lab 09 tells how; its optimiser builds one "
            "here, in a process of its own. Without a GPU its kernels run in the simulator: then latency is an "
            "estimate, and tuning for images of 32 × 32 takes some minutes."
        )
        self.widget = column(
            section(
                "Build a plan",
                note(f"<p>{escape(where)}</p>"),
                self._run,
                self._precision,
                self._calibration,
                self._batches,
                self._images,
                self._tuned,
                row(self._build, self._model, self._onnx),
                self._model_links,
            ),
            column(
                section(
                    "Plans",
                    self._plan,
                    self._state,
                    row(self._stop, self._offer_files, self._deletion.button),
                    self._deletion.question,
                    self._links,
                    self._report,
                ),
                section("Service", self.service.widget),
            ),
        )
        self.widget.add_class("digits-deploy")
        self._when(self._run, call=lambda: page.selected.set_trait("run", self._run.value or page.selected.run))
        self._when(self._plan, call=self._look)
        self._when(self._precision, call=self._show_calibration)
        self._follow("run", "runs_version", call=self._fill_runs)
        self._follow("plans_version", call=self._fill_plans)
        self._show_calibration()
        self._fill_runs()
        self._fill_plans()
        page.every(EVERY, self._poll)

    # Building

    def spec(self) -> plans.PlanSpec:
        """Return what the controls say. Raises DigitsError with a sentence where that is wrong."""
        try:
            batches = tuple(int(one) for one in self._batches.value.replace(";", ",").split(",") if one.strip())
        except ValueError:
            raise DigitsError(
                f"Write the batches as whole numbers with commas between, such as 1, 8, not {self._batches.value!r}."
            ) from None
        return plans.PlanSpec(
            self._precision.value, batches, self._tuned.value, self._calibration.value, test_images=self._images.value
        )

    def _show_calibration(self) -> None:
        self._calibration.layout.display = None if self._precision.value == "int8" else "none"

    def _start(self) -> None:
        workspace, run, spec = self.page.workspace, self._run.value, self.spec()
        if not run:
            raise DigitsError("No run is chosen. Train a network first, then choose its run here.")
        self._build.disabled = True
        self.page.in_background(lambda: plans.start(workspace, run, spec), self._started, self._fill_runs)

    def _started(self, job: plans.PlanJob) -> None:
        self.page.say(f"The plan {job.id} is being built. That goes on when this page is closed.")
        self._fill_plans(job.id)
        self.page.selected.plans_version += 1

    def _fill_runs(self) -> None:
        found = [run for run in runs.listing(self.page.workspace) if trained.listed(run)]
        self._offer(self._run, [(f"{run.name} ({run.id[:15]})", run.id) for run in found], self.page.selected.run)
        self._build.disabled = not found or bool(plans.missing())
        self._model.disabled = not found
        self._onnx.disabled = self._build.disabled
        self._model_links.value = ""

    def _offer_model(self) -> None:
        run = runs.open(self.page.workspace, self._run.value)
        path = run.folder / trained.MODEL
        if not path.is_file():
            raise DigitsError(f"The run {run.name} has no {trained.MODEL} yet; it has one once it is done or stopped.")
        self._model_links.value = deploy_view.downloads([(f"{run.id}.keras", path), *self._labels(run.spec.dataset)])

    def _export(self) -> None:
        workspace, run = self.page.workspace, runs.open(self.page.workspace, self._run.value)
        self._onnx.disabled = True
        self._model_links.value = said("The network is exported, and answers test images; that takes some seconds.")

        def show(report: dict[str, Any]) -> None:
            files = [(f"{run.id}.onnx", run.folder / onnx_export.MODEL), *self._labels(run.spec.dataset)]
            self._model_links.value = deploy_view.downloads(files) + deploy_view.exported(report)

        def free() -> None:
            self._onnx.disabled = False
            if "some seconds" in self._model_links.value:
                self._model_links.value = ""

        self.page.in_background(lambda: onnx_export.export(workspace, run.id), show, free)

    def _labels(self, dataset: str) -> list[tuple[str, bytes]]:
        """Return the classes' names as a file to offer; none if the dataset was deleted."""
        try:
            return [("labels.txt", deploy_view.labels(Dataset.open(self.page.workspace, dataset).classes))]
        except DigitsError:
            return []

    # Plans

    def _fill_plans(self, wanted: str = "") -> None:
        """List the plans, and show `wanted`, or the one shown so far if it is still there."""
        found = [(deploy_view.title(job), job.id) for job in plans.listing(self.page.workspace)]
        self._offer(self._plan, found, wanted or self._plan.value)
        self._look()

    def _poll(self) -> None:
        if self.page.opened == self.title:
            self._fill_plans()

    def _chosen(self) -> plans.PlanJob:
        if not self._plan.value:
            raise DigitsError("There is no plan. Build one first.")
        return plans.open(self.page.workspace, self._plan.value)

    def _look(self) -> None:
        """Show the chosen plan, if anything of it has changed."""
        if not self._plan.value:
            seen, state = None, None
        else:
            job = plans.PlanJob(self.page.workspace.plans / self._plan.value)
            state = job.state()
            seen = (job.id, state)
        if seen == self._seen and seen is not None:
            return
        changed = seen is None or self._seen is None or seen[0] != self._seen[0]
        self._seen = seen
        if changed:
            self._links.value = ""
            self._deletion.withdraw()
        status = state["status"] if state else ""
        self._state.value = deploy_view.state(state) if state else ""
        self._stop.disabled = status not in plans.ALIVE
        self._deletion.button.disabled = status in ("", *plans.ALIVE)
        self._offer_files.disabled = status != "done"
        self.service.choose(self._plan.value, status == "done")
        self._report.value = ""
        self._report.value = self._told(status)

    def _told(self, status: str) -> str:
        if status != "done":
            return ""
        job = self._chosen()
        try:
            return deploy_view.report(job.report(), plans.PRECISIONS[job.spec.precision])
        except DigitsError as error:  # one damaged plan leaves the panel as it is
            return said(error, "error")

    def _offer_plan(self) -> None:
        job = self._chosen()
        files = [(f"{job.id}-{path.name}", path) for path in job.files()]
        self._links.value = deploy_view.downloads([*files, *self._labels(job.about["dataset"])])

    def _delete_plan(self) -> None:
        job = self._chosen()
        job.delete()
        self.page.say(f"The plan {job.id} has been deleted.")
        self.page.selected.plans_version += 1

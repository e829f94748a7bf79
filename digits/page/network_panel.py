"""The network: which one the next run trains, with its options, your own code, and the weights that it starts from."""

import threading
from collections.abc import Mapping
from typing import Any

import ipywidgets as widgets

from digits.data.dataset import Dataset
from digits.files import DigitsError, read_json, write_json
from digits.networks import NETWORKS, configuration, custom, drawing, keras_file, starts, summary
from digits.page import elements as ui
from digits.page.panel import Panel
from digits.training import runs, trained

_LABELS = {"filters": "Filters of the first layer", "units": "Units of the dense layer", "dropout": "Dropout (share)"}
_UNKNOWN = ("classification", (28, 28, 1), 10)  # what networks are shown for as long as no dataset is selected
_RANDOM = "random weights"
DRAFT = "network_draft.json"  # in the workspace: {"network": as chosen last, "code": in the editor}


class NetworkPanel(Panel):
    """Writes `page.selected.network` and `start`; `network_error` while your own code is not checked."""

    title = "Network"

    def __init__(self, page: Any) -> None:
        self.page = page
        self._configuration: dict[str, Any] | None = None  # of the code that was checked last
        self._checked_code = ""
        self._checked_for: tuple[Any, ...] = ()
        self._draft: dict[str, Any] = {}
        self._refusal = ("", (), "")  # code, what it was for, and why it cannot be used
        self._options: dict[str, Any] = {}
        self._for = ui.note("")
        self._network = ui.choice("Network")
        self._start = ui.choice("Start from", [(_RANDOM, "")])
        self._freeze = ui.check("Freeze the start's layers", page.selected.freeze)
        self._file = ui.upload("Start from a .keras file", ".keras")
        for wide in (self._network, self._start):
            wide.layout.max_width = "44rem"
        self._option_box, self._wrong = ui.column(), ui.note("")
        self._wrong.add_class("digits-live")
        self._code = widgets.Textarea(
            custom.EXAMPLE, description="Keras code", continuous_update=False, layout={"width": "100%"}
        )
        self._code.add_class("digits-code")
        self._confirmed = ui.check("I have read this code, and want to run it in the sandbox")
        self._confirmed.add_class("digits-confirm")
        self._check = ui.button("Check the code", page.guarded(self._check_code), kind="primary")
        self._cancelled = threading.Event()
        self._break = ui.button("Break off", page.guarded(self._cancelled.set))
        self._break.layout.display = "none"
        self._own = ui.section(
            "Your own code",
            ui.note(f'<p class="digits-warning"><strong>Warning.</strong> {ui.escape(custom.WARNING)}</p>'),
            self._code,
            ui.row(self._confirmed, self._check, self._break),
            ui.note(
                '<p class="digits-muted">The function is run once. What it returns may consist of Keras\' own layers; '
                "their names, settings and connections are kept, and nothing of the code.</p>"
            ),
        )
        self._show = ui.button("Show the layers", page.guarded(self._summarise))
        self._layers = ui.note("")
        self._layers.add_class("digits-layers")
        self.widget = ui.column(
            ui.section(
                "Which network",
                self._for,
                self._network,
                self._option_box,
                self._start,
                self._freeze,
                ui.row(self._file),
                self._wrong,
            ),
            self._own,
            ui.section("Layers", ui.row(self._show), self._layers),
        )
        self._when(self._network, call=self._network_chosen)
        self._when(self._start, call=lambda: page.selected.set_trait("start", self._start.value))
        self._when(self._freeze, call=lambda: page.selected.set_trait("freeze", self._freeze.value))
        self._when(self._file, call=self._uploaded)
        self._when(self._code, self._confirmed, call=self._changed)
        self._follow("dataset", "datasets_version", call=self._fill)
        self._follow("network", call=lambda: self._take(page.selected.network))
        self._follow("runs_version", "start", call=self._fill_starts)
        self._follow("freeze", call=lambda: self._refill(self._freeze, None, page.selected.freeze))
        self._read_draft()
        self._fill()

    # What outlives the page

    def _read_draft(self) -> None:
        """Begin with the network and the code of the last time. A draft that is damaged is left aside."""
        try:
            draft = read_json(self.page.workspace.root / DRAFT)
        except DigitsError:
            draft = {"code": self.page.selected.network.get("source")}
        self._draft = draft
        code, network = draft.get("code"), draft.get("network")
        name = network.get("name") if isinstance(network, dict) else None
        with self._quietly():
            if isinstance(code, str) and len(code) <= custom.MOST_SOURCE:
                self._code.value = code
            if not self.page.selected.network and isinstance(name, str) and name in NETWORKS:
                self.page.selected.network = network

    def _write_draft(self) -> None:
        draft = {"network": self.page.selected.network, "code": self._code.value}
        if draft != self._draft:
            self._draft = draft
            write_json(self.page.workspace.root / DRAFT, draft)

    # What it is for

    def _task(self) -> tuple[str, tuple[int, int, int], int]:
        """Return the kind, image and number of classes of the selected dataset."""
        if not self.page.selected.dataset:
            return _UNKNOWN
        try:
            dataset = Dataset.open(self.page.workspace, self.page.selected.dataset)
        except DigitsError:  # it was deleted; the data panel says so
            return _UNKNOWN
        return dataset.kind, dataset.shape, len(dataset.classes)

    def _fill(self, with_code: bool = False) -> None:
        """Show what is selected. `with_code`: its code, too, in place of what is in the editor."""
        kind, (height, width, channels), classes = self._task()
        said = "For images of" if self.page.selected.dataset else "No dataset is selected; shown for images of"
        self._for.value = f"<p>{said} {height} × {width} × {channels}, {classes} classes, {ui.escape(kind)}.</p>"
        fitting = [(one.title, one.name) for one in NETWORKS.values() if kind in one.kinds]
        wanted = self.page.selected.network.get("name", self._network.value)
        self._offer(self._network, fitting, wanted)
        self._fill_starts()
        self._show_options(self.page.selected.network, with_code)
        self._changed()

    def _show_options(self, values: Mapping[str, Any], with_code: bool = False) -> None:
        """Make the controls of the chosen network's options."""
        network = NETWORKS[self._network.value]
        values = values if values.get("name") == network.name else {}
        self._options = {}
        for name, default in network.options.items():
            value, label = _number(values.get(name), default), _LABELS.get(name, name.replace("_", " ").capitalize())
            whole = isinstance(default, int) and not isinstance(default, bool)
            made = ui.integer(label, value, 0, 1_000_000) if whole else ui.real(label, value, 0, 1_000_000)
            self._when(made, call=self._changed)
            self._options[name] = made
        self._option_box.children = list(self._options.values())
        self._own.layout.display = None if network.name == "custom" else "none"
        if network.name == "custom" and values.get("configuration"):
            if with_code:
                with self._quietly():
                    self._code.value = str(values.get("source", ""))
            if self._code.value == values.get("source"):
                try:
                    self._keep(configuration.check(values["configuration"], *self._task()[1:]))
                except configuration.ConfigurationError:  # it was for other images
                    self._keep(None)

    def _keep(self, found: dict[str, Any] | None) -> None:
        """Take a configuration for what the code in the editor means for the selected dataset."""
        self._configuration, self._checked_code, self._checked_for = found, self._code.value, self._task()

    def _take(self, network: Mapping[str, Any]) -> None:
        """Show a network that another panel has set, such as a run's."""
        if self._filling or not network or dict(network) == self._chosen():
            return
        # That of the last time comes back with the page, and may be older than the code in the editor.
        self._fill(with_code=dict(network) != self._draft.get("network"))

    # What is chosen

    def _chosen(self) -> dict[str, Any] | None:
        """Return the network as a run's spec has it; None for code that is not checked as it stands."""
        name = self._network.value
        if name != "custom":
            return {"name": name, **{option: control.value for option, control in self._options.items()}}
        if self._configuration is None or (self._checked_code, self._checked_for) != (self._code.value, self._task()):
            return None
        return {"name": "custom", "configuration": self._configuration, "source": self._code.value}

    def _changed(self) -> None:
        if self._filling:
            return
        selected = self.page.selected
        why = custom.unavailable() if self._network.value == "custom" else ""
        try:
            network = self._chosen()
        except DigitsError as error:  # a field holds what is no such number
            network, why = None, str(error)
        self._check.disabled = bool(why) or not (self._confirmed.value or self._code.value == keras_file.SOURCE)
        self._confirmed.disabled = bool(why)
        self._show.disabled = network is None
        if network is None:
            code, task, refused = self._refusal
            if (code, task) != (self._code.value, self._task()):
                refused = "Your code has not been checked for this dataset. Confirm, and check it."
            selected.network_error = why or refused
            self._layers.value = ""
            self._wrong.value = f'<p class="digits-error">Not usable yet: {ui.escape(selected.network_error)}</p>'
            self._write_draft()
            return
        selected.network_error, self._wrong.value = "", ""
        if selected.network != network:
            self._layers.value = ""
            selected.network = network
        self._write_draft()

    def _network_chosen(self) -> None:
        self._layers.value = ""
        self._show_options({})
        self._fill_starts()
        self._changed()

    # Your own code

    def _check_code(self) -> None:
        source, task = self._code.value, self._task()
        confirmed = self._confirmed.value or source == keras_file.SOURCE  # which the course wrote
        start = keras_file.config(self.page.workspace.root, self._start.value)
        _, image, classes = task
        self._check.disabled, self._break.layout.display = True, None
        self._cancelled.clear()
        self.page.say("The code runs in the sandbox. TensorFlow's start takes the most of it, twice some 5 seconds.")

        def work() -> DigitsError | tuple[dict[str, Any], dict[str, Any]]:
            try:
                found = custom.configure(
                    source, image, classes, confirmed=confirmed, cancelled=self._cancelled.is_set, start=start
                )
                return found, summary.of_network({"name": "custom", "configuration": found}, image, classes)
            except DigitsError as error:
                return error

        def done(found: DigitsError | tuple[dict[str, Any], dict[str, Any]]) -> None:
            if source != self._code.value:
                self.page.say("The code has been changed meanwhile. Check it again.")
            elif isinstance(found, DigitsError):
                self._refusal = (source, task, str(found))
                self._keep(None)
                self._changed()
                self.page.say(str(found), error=True)
            else:
                self._keep(found[0])
                self._changed()
                self._show_summary(found[1])
                self.page.say(f"The code can be used: {len(found[1]['layers'])} layers.")

        def end() -> None:
            self._break.layout.display = "none"
            self._changed()

        self.page.in_background(work, done, end)

    def _uploaded(self) -> None:
        """Take a .keras file as the start: its layers before the last Dense one, frozen, and a new answer."""
        if not self._file.value:
            return
        file = self._file.value[0]
        self._file.value = ()  # so that the same file can be given again
        start = keras_file.keep(self.page.workspace.root, str(file["name"]), bytes(file["content"]))
        self.page.selected.start, self.page.selected.freeze = start, True
        with self._quietly():
            self._network.value, self._code.value = "custom", keras_file.SOURCE
        self._fill_starts()
        self._show_options({})
        self._changed()
        self._check_code()

    # Layers

    def _summarise(self) -> None:
        network, (_, image, classes) = self._chosen(), self._task()
        if network is None:
            raise DigitsError("The code has not been checked. Confirm, and check it first.")
        self._show.disabled = True
        self._layers.value = '<p role="status">The network is being built; this takes some seconds.</p>'

        def done(found: dict[str, Any]) -> None:
            if network == self._chosen():
                self._show_summary(found)

        def end() -> None:
            if 'role="status"' in self._layers.value:
                self._layers.value = ""
            self._changed()

        self.page.in_background(lambda: summary.of_network(network, image, classes), done, end)

    def _show_summary(self, found: Mapping[str, Any]) -> None:
        self._layers.value = layers_table(found) + (
            '<h4>Drawn</h4><div class="digits-drawing" tabindex="0" role="region" aria-label="The network, drawn">'
            f"{drawing.svg(found)}</div>"
        )

    # The weights to start from

    def _fill_starts(self) -> None:
        options = [(_RANDOM, "")]
        if self._network.value == "googlenet":
            options.append(("Lab 09's weights, trained on digits of 8 × 8", starts.LAB_09))
        options += [(start, start) for start in keras_file.kept(self.page.workspace.root)]
        for run in runs.listing(self.page.workspace):
            if trained.listed(run):
                options.append((f"{run.name} ({run.id[:15]})", run.id))
        wanted = self.page.selected.start
        if wanted not in [value for _, value in options]:
            options.append((f"{wanted} (not there)", wanted))
        self._refill(self._start, options, wanted)


def _number(value: Any, default: float) -> float:
    """Return an option as a draft or a run has it, or its default where that is no number."""
    right = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1_000_000
    return type(default)(value) if right else default


def layers_table(found: Mapping[str, Any]) -> str:
    """Return the HTML of a network's table of layers, with its sums, as `digits.networks.summary` describes it."""
    rows = [
        [
            ui.Markup(
                f'{ui.escape(layer["name"])} <span class="digits-muted">{ui.escape(layer["kind"])}, '
                f"{ui.escape(' × '.join(map(str, layer['shape'])))}</span>"
            ),
            f"{layer['parameters']:,}",
            f"{layer['multiply_adds']:,}",
            f"{layer['bytes']:,}",
        ]
        for layer in found["layers"]
    ]
    rows.append(["All", f"{found['parameters']:,}", f"{found['multiply_adds']:,}", f"{found['bytes']:,}"])
    head = ["Layer, with what it puts out", "Parameters", "Multiply-adds", "Bytes put out"]
    told = (
        f"For one image in float32. {found['trainable']:,} of {found['parameters']:,} parameters are trained; all "
        f"together take {found['parameter_bytes']:,} bytes."
    )
    return f"<p>{ui.escape(told)}</p>" + ui.table(head, rows, f"{len(found['layers'])} layers")

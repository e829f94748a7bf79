"""Surface reads and writes: texels by their coordinates, without the rules of a texture."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from warplab.simulator.errors import IllegalAddress
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.texels import Surface, Texels
from warplab.simulator.run.texel_access import TexelAccess, Values
from warplab.simulator.translate.texel_site import TexelSite

_REGISTERS = {"float": "f4", "signed": "i4", "unsigned": "u4"}  # what sust.p takes for each kind of texel


class Surfaces(TexelAccess[Surface]):
    """Called by translated blocks. `lanes` are the group's, None for all lanes of the chunk."""

    kind = Surface

    def read(self, site: TexelSite, handle: np.ndarray, coordinates: Sequence[np.ndarray], lanes) -> Values:
        """Execute suld.b: return the parts of what each lane reads; x counts bytes."""
        return self.serve(site, handle, coordinates, lanes, self._read, site.dtype, site.count)

    def _read(self, site: TexelSite, surface: Surface, coordinates: Values, lanes: np.ndarray) -> Values:
        texels = surface.texels
        address, inside = self._address(site, texels, coordinates, lanes, site.width, 1)
        parts = [np.zeros(lanes.shape, site.dtype) for _ in range(site.count)]
        if inside.any():
            found = self.load(site, texels, address[inside], site.dtype, site.count, lanes[inside])
            for part, value in zip(parts, found, strict=True):
                part[inside] = value
        return parts

    def write(
        self, site: TexelSite, handle: np.ndarray, coordinates: Sequence[np.ndarray], values: Values, lanes
    ) -> None:
        """Execute sust: store each lane's values. x counts bytes (sust.b) or texels (sust.p)."""
        every, places, values = self.every(lanes), self.spread(coordinates), self.spread(values)
        for surface, chosen in self.objects(site, handle, every):
            texels, writer, unit = surface.texels, site, 1
            parts = [value[chosen] for value in values]
            if site.formatted:
                writer = replace(site, dtype=texels.format.dtype, count=texels.format.channels)
                parts, unit = _formatted(texels, parts), texels.format.nbytes
            own = every[chosen]
            address, inside = self._address(site, texels, [p[chosen] for p in places], own, writer.width, unit)
            if inside.any():
                self._store(writer, Addresses(address[inside]), [part[inside] for part in parts], own[inside])

    def _store(self, site: TexelSite, addresses: Addresses, values: Values, lanes: np.ndarray) -> None:
        for notify in self.chunk.observers.copy_done:
            notify(site, "global", addresses, lanes, values)
        view, index = addresses.index(self.chunk.device.memory.views[site.dtype], site.item, 0)
        for k, value in enumerate(values):
            view[k:][index] = value

    def _address(
        self, site: TexelSite, texels: Texels, coordinates: Values, lanes: np.ndarray, width: int, unit: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return where each lane's access of `width` bytes goes, and whether it goes anywhere. `unit`: bytes per x."""
        numbers = [c.astype(np.int64) for c in coordinates]
        layer = numbers.pop(0) if site.geometry.startswith("a") else np.zeros(lanes.shape, np.int64)
        numbers = [numbers[0] * unit, *numbers[1 : len(texels.shape)], layer]
        last = [texels.shape[0] * texels.format.nbytes - width, *(n - 1 for n in texels.shape[1:])]
        last.append((texels.layers or 1) - 1)
        inside = np.logical_and.reduce([(n >= 0) & (n <= end) for n, end in zip(numbers, last, strict=True)])
        if site.outside == "trap" and not inside.all():
            bad = int(np.argmin(inside))
            place = ", ".join(str(int(n[bad])) for n in (numbers[0] // unit, *numbers[1:-1]))
            more = "" if texels.layers is None else f" of layer {int(layer[bad])}"
            raise self.error(
                site,
                f"coordinates ({place}){more} outside of a surface: {texels.describe()}",
                "In `surf…read` and `surf…write` x counts bytes, and cudaBoundaryModeTrap ends the kernel.",
                lanes[bad:],
                IllegalAddress,
            )
        if site.outside == "clamp":
            numbers = [np.clip(n, 0, end) for n, end in zip(numbers, last, strict=True)]
            inside = np.ones(lanes.shape, bool)
        x, *others, layer = numbers
        address = texels.address + layer * texels.layer_bytes + x
        for number, stride in zip(others, texels.strides[1:], strict=False):
            address = address + number * stride
        return address.astype(np.uint64), inside


def _formatted(texels: Texels, parts: Values) -> Values:
    """Convert 32-bit values to the channels of the texels (sust.p). Integers beyond their range become its ends."""
    form = texels.format
    values = [np.ascontiguousarray(part).view(_REGISTERS[form.kind]) for part in parts[: form.channels]]
    if form.kind != "float":
        ends = np.iinfo(form.dtype)
        values = [np.clip(value, ends.min, ends.max) for value in values]
    values += [np.zeros(parts[0].shape, values[0].dtype)] * (form.channels - len(values))
    return [value.astype(form.dtype) for value in values]

"""Texture fetches, from coordinates to the value that a texture's rules make of its texels, and surface reads and
writes, without such rules.

Observers see texels as they see the pieces of an asynchronous copy, which do not count as loads or stores either. How
many requests and sectors a texture unit makes of a fetch is not documented, nor is the order of the texels of a CUDA
array in memory, so neither is counted.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np

from warplab.simulator.errors import IllegalAddress, SimulatorError, UninitializedRead
from warplab.simulator.memory.device_memory import ORIGIN
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.texels import Surface, Texels, Texture
from warplab.simulator.numerics import texture_filtering
from warplab.simulator.numerics.texture_filtering import Place
from warplab.simulator.translate.operations.textures import TexelSite

# Axes of a geometry, as they are named in PTX, without the layer.
_AXES = {"1d": 1, "a1d": 1, "2d": 2, "a2d": 2, "3d": 3, "cube": 2, "acube": 2}
_WORDS = {Texture: ("texture", "TextureObject"), Surface: ("surface", "SurfaceObject")}

Kind = TypeVar("Kind", Texture, Surface)
Values = list[np.ndarray]


class TexelAccess(Generic[Kind]):
    """Base of `Textures` and `Surfaces`: objects by handle, loads of texels, errors. `lanes` are the group's, None
    for all lanes of the chunk; in the methods of these two, the numbers of those lanes that share a handle."""

    kind: type[Kind]

    def __init__(self, chunk) -> None:
        self.chunk = chunk

    def spread(self, values: Sequence[np.ndarray]) -> Values:
        """Return one entry per lane of the group."""
        return [np.broadcast_to(value, self.chunk.group.count) for value in values]

    def objects(self, site: TexelSite, handle: np.ndarray, lanes: np.ndarray) -> Iterator[tuple[Kind, np.ndarray]]:
        """Yield the objects that lanes name, and which lanes name each. Raises for a handle of another kind."""
        numbers = np.unique(handle).tolist()
        for number in numbers:
            chosen = np.flatnonzero(np.broadcast_to(handle == number, lanes.shape))
            found = self.chunk.device.memory.handles.find(number)
            if not isinstance(found, self.kind):
                raise self._no_object(site, number, found, lanes[chosen])
            self._fits(site, found.texels, lanes[chosen])
            yield found, chosen

    def serve(
        self,
        site: TexelSite,
        handle: np.ndarray,
        coordinates: Sequence[np.ndarray],
        lanes,
        values_of: Callable[[TexelSite, Kind, Values, np.ndarray], Values],
        dtype: str,
        count: int,
    ) -> Values:
        """Return `count` values per lane, which `values_of` computes for the lanes that share a handle."""
        every, spread = self.chunk.every(lanes), self.spread(coordinates)
        results = [np.zeros(every.shape, dtype) for _ in range(count)]
        for found, chosen in self.objects(site, handle, every):
            values = values_of(site, found, [c[chosen] for c in spread], every[chosen])
            for result, value in zip(results, values, strict=True):
                result[chosen] = value
        return results

    def load(
        self, site: TexelSite, texels: Texels, address: np.ndarray, dtype: str, count: int, lanes: np.ndarray
    ) -> Values:
        """Return `count` elements at each lane's address."""
        item = int(dtype[1:])
        if self.chunk.observers.copy_read:
            self._notify(site, texels, address, item, count, lanes)
        view = self.chunk.device.memory.views[dtype]
        index = (address.view(np.int64) & (ORIGIN - 1)) // item
        return [view[k:].take(index) for k in range(count)]

    def _notify(self, site: TexelSite, texels: Texels, address: np.ndarray, item: int, count: int, lanes) -> None:
        seen = replace(site, op="load", space="global", dtype=f"u{item}", count=count)
        try:
            for notify in self.chunk.observers.copy_read:
                notify(seen, "global", Addresses(address), lanes)
        except UninitializedRead as error:
            place, layer = texels.place(error.address or 0)
            where = f"({', '.join(map(str, place))})" + ("" if texels.layers is None else f" in layer {layer}")
            raise UninitializedRead(
                f"uninitialised read: texel {where} of {texels.describe()} was never written",
                reason="Copy values into the array before the launch (copy_from), or store them through a surface.",
                **{k: getattr(error, k) for k in ("kernel", "block", "thread", "file", "line", "source", "address")},
            ) from None

    def query(self, site: TexelSite, what: str, handle: np.ndarray, lanes) -> np.ndarray:
        """Execute txq and suq: a property of each lane's texture or surface."""

        def value(site: TexelSite, found: Texture | Surface, _, own: np.ndarray) -> Values:
            width, height, depth = (*found.texels.shape, 0, 0)[:3]
            known = {"width": width, "height": height, "depth": depth, "array_size": found.texels.layers or 0}
            known |= {"num_mipmap_levels": 1, "num_samples": 1}
            if isinstance(found, Texture):
                known["normalized_coords"] = int(found.sampler.normalized)
            return [np.full(own.shape, known[what], np.uint32)]

        return self.serve(site, handle, [], lanes, value, "u4", 1)[0]

    # -- errors ----------------------------------------------------------------------------------------------------

    def error(
        self, site: TexelSite, what: str, reason: str, lanes: np.ndarray, kind: type[SimulatorError] = SimulatorError
    ) -> SimulatorError:
        return self.chunk.error(site, lanes[0], what, reason, kind)

    def _fits(self, site: TexelSite, texels: Texels, lanes: np.ndarray) -> None:
        """Raise if an instruction's geometry is not that of the texels."""
        geometry = site.geometry
        if not geometry:
            return
        fits = len(texels.shape) == _AXES[geometry]
        fits &= texels.cube == geometry.endswith("cube") or self.kind is Surface  # which have no cubes
        layered = geometry.startswith("a") or geometry == "cube"
        if fits and layered == (texels.layers is not None) and (texels.source != "linear" or site.integer):
            return
        reason = "The function must fit the array: 1D, 2D, 3D, layered (`tex2DLayered`) or a cube map."
        if texels.source == "linear":
            reason = "Fetch from linear memory with tex1Dfetch."
        raise self.error(site, f"`{site.text.split()[0]}` on {texels.describe()}", reason, lanes)

    def _no_object(self, site: TexelSite, handle: int, found, lanes: np.ndarray) -> SimulatorError:
        word, made_by = _WORDS[self.kind]
        if found is not None:
            what, reason = f"that of a {_WORDS[type(found)][0]}", f"Give the kernel a {made_by}."
        elif self.chunk.device.memory.handles.was_removed(handle):
            what, reason = "whose object has been destroyed", f"Keep the {made_by} until the kernel has run."
        else:
            what = "which is none"
            reason = f"Give the kernel a {made_by} of the simulated device (cp.cuda.texture)."
        needs = f"`{site.text.split()[0]}` needs the handle of a {word}"
        return self.error(site, f"{needs}, but was given {handle:#x}, {what}", reason, lanes)


_DEFAULT = (0, 0, 0, 1)  # of channels that the texels do not have; CUDA leaves them open
_GATHERED = ((0, 1), (1, 1), (1, 0), (0, 0))  # which neighbour along x and y: counter-clockwise from the lower left


class Textures(TexelAccess[Texture]):
    """Called by translated blocks. `lanes` are the group's, None for all lanes of the chunk."""

    kind = Texture

    def fetch(self, site: TexelSite, handle: np.ndarray, coordinates: Sequence[np.ndarray], lanes) -> Values:
        """Execute tex: return the four channels of each lane's value."""
        return self.serve(site, handle, coordinates, lanes, self._sample, site.result, 4)

    def gather(self, site: TexelSite, handle: np.ndarray, coordinates: Sequence[np.ndarray], lanes) -> Values:
        """Execute tld4: return one channel of the four texels around each lane's coordinates."""
        return self.serve(site, handle, coordinates, lanes, self._gather, site.result, 4)

    def _sample(self, site: TexelSite, texture: Texture, coordinates: Values, lanes: np.ndarray) -> Values:
        self._check_type(site, texture, lanes)
        layer, coordinates = self._layer(site, texture.texels, coordinates, lanes)
        total: Values = []
        dtype = np.dtype(texture.texels.format.dtype)
        for places, weight in self._corners(site, texture, coordinates, lanes):
            values = self._values(site, texture, layer, places, lanes)
            if weight is not None:
                values = [weight * texture_filtering.unrounded(value, dtype) for value in values]
            total = [a + b for a, b in zip(total, values, strict=True)] if total else values
        if total[0].dtype == np.float64:
            total = [texture_filtering.filtered(value, dtype) for value in total]
        missing = [np.array(k, site.result) for k in _DEFAULT[len(total) :]]
        return [channel.astype(site.result) for channel in total] + missing

    def _gather(self, site: TexelSite, texture: Texture, coordinates: Values, lanes: np.ndarray) -> Values:
        texels = texture.texels
        self._check_type(site, texture, lanes)
        if not texels.gather:
            raise self.error(
                site,
                f"a gather from {texels.describe()}, which was not made for it",
                "Only 2D CUDA arrays made with flags=cudaArrayTextureGather can be gathered from.",
                lanes,
            )
        if site.component >= texels.format.channels:
            what = f"a gather of channel {site.component} of {texels.describe()}"
            raise self.error(site, what, "Its texels have fewer channels.", lanes)
        layer, coordinates = self._layer(site, texels, coordinates, lanes)
        sides = self._sides(texture, coordinates)
        corners = ([side[second] for (side, _), second in zip(sides, which, strict=True)] for which in _GATHERED)
        return [self._values(site, texture, layer, places, lanes)[site.component] for places in corners]

    # -- from coordinates to texels --------------------------------------------------------------------------------

    def _layer(
        self, site: TexelSite, texels: Texels, coordinates: Values, lanes: np.ndarray
    ) -> tuple[np.ndarray, Values]:
        """Split off the layer, and for a cube map the face. Returns the coordinates that remain."""
        layer = np.zeros(lanes.shape, np.int64)
        if site.geometry.startswith("a"):
            layer, coordinates = coordinates[0].view(np.uint32).astype(np.int64), coordinates[1:]
            bad = layer >= (texels.layers or 1) // (6 if texels.cube else 1)
            if bad.any():
                first = int(np.argmax(bad))
                raise self.error(
                    site,
                    f"layer {int(layer[first])} of {texels.describe()}",
                    "Layers are counted from 0. What a GPU reads beyond the last is not documented.",
                    lanes[first:],
                    IllegalAddress,
                )
        if not texels.cube:
            return layer, coordinates
        face, *coordinates = texture_filtering.cube_face(*coordinates[:3])
        return face + 6 * layer, coordinates

    def _corners(
        self, site: TexelSite, texture: Texture, coordinates: Values, lanes: np.ndarray
    ) -> Iterator[tuple[list[Place], np.ndarray | None]]:
        """Yield the texels that make up the value, and their weights: None for the only one."""
        texels, sampler = texture.texels, texture.sampler
        axes = list(zip(coordinates, texels.shape, sampler.modes, strict=False))
        if texels.source == "linear":
            yield [self._in_linear_memory(site, texels, coordinates[0], lanes)], None
        elif site.integer:
            yield [texture_filtering.whole(*axis) for axis in axes], None
        elif not sampler.linear:
            yield [texture_filtering.nearest(*axis, sampler.normalized) for axis in axes], None
        else:
            sides = self._sides(texture, coordinates)
            if site.geometry == "1d" and sampler.modes[1] == "border":
                # To an H100 it is an array with a height of 1, of which y = 0 is the upper end.
                zero = np.zeros(lanes.shape, np.float32)
                sides.append(texture_filtering.neighbours(zero, 1, "border", sampler.normalized))
            for which, weight in texture_filtering.corner_weights([part for _, part in sides]).items():
                yield [side[second] for (side, _), second in zip(sides, which, strict=True)], weight

    @staticmethod
    def _sides(texture: Texture, coordinates: Values) -> list[tuple[tuple[Place, Place], np.ndarray]]:
        """Return, for each axis, the two texels around the coordinates, and the weight of the second."""
        sampler = texture.sampler
        axes = zip(coordinates, texture.texels.shape, sampler.modes, strict=False)
        return [texture_filtering.neighbours(*axis, sampler.normalized) for axis in axes]

    def _in_linear_memory(self, site: TexelSite, texels: Texels, x: np.ndarray, lanes: np.ndarray) -> Place:
        inside = (x >= 0) & (x < texels.shape[0])
        if self.chunk.checked and not inside.all():
            bad = int(np.argmin(inside))
            raise self.error(
                site,
                f"texel {int(x[bad])} of {texels.describe()}",
                "Address modes do not apply to linear memory, and what a GPU reads there is not documented.",
                lanes[bad:],
                IllegalAddress,
            )
        return np.where(inside, x, 0), inside

    # -- from texels to values -------------------------------------------------------------------------------------

    def _values(
        self, site: TexelSite, texture: Texture, layer: np.ndarray, places: list[Place], lanes: np.ndarray
    ) -> Values:
        """Return the channels of one texel for each lane, or of the border where it lies outside."""
        texels, form = texture.texels, texture.texels.format
        address = texels.address + layer * texels.layer_bytes
        for (number, _), stride in zip(places, texels.strides, strict=False):
            address = address + number * stride
        inside = np.logical_and.reduce([good for _, good in places])
        values = [np.zeros(lanes.shape, form.dtype) for _ in range(form.channels)]
        if inside.any():
            loaded = self.load(
                site, texels, address[inside].astype(np.uint64), form.dtype, form.channels, lanes[inside]
            )
            for value, part in zip(values, loaded, strict=True):
                value[inside] = part
        border = np.array(texture.sampler.border[: form.channels], np.float32)
        if texture.returns_float:
            pairs = zip(values, border, strict=True)
            return [np.where(inside, texture_filtering.as_float(value), color) for value, color in pairs]
        bits = border.view(np.int32)  # CUDA takes the bits of an integer texture's border as they are
        whole = [np.where(inside, v.astype(np.int64), c) for v, c in zip(values, bits, strict=True)]
        return [value.astype(np.int32).view(site.result) for value in whole]

    def _check_type(self, site: TexelSite, texture: Texture, lanes: np.ndarray) -> None:
        integers = site.result in ("u4", "i4")
        if texture.returns_float != integers:
            return
        asked, returned = ("integers", "floating-point numbers") if integers else ("floating-point numbers", "integers")
        raise self.error(
            site,
            f"a fetch of {asked} from a texture that returns {returned}: {texture.texels.describe()}",
            "Name the texture's own type in the fetch, as in tex2D<float>, or choose another cudaReadMode.",
            lanes,
        )


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
        every, places, values = self.chunk.every(lanes), self.spread(coordinates), self.spread(values)
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

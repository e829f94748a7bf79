"""Texture fetches: from coordinates to the value that a texture's rules make of its texels."""

from collections.abc import Iterator, Sequence

import numpy as np

from warplab.simulator.errors import IllegalAddress
from warplab.simulator.memory.texels import Texels, Texture
from warplab.simulator.numerics import texture_filtering
from warplab.simulator.numerics.texture_filtering import Place
from warplab.simulator.run.texel_access import TexelAccess, Values
from warplab.simulator.translate.texel_site import TexelSite

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

"""What texture and surface instructions have in common: objects by handle, loads of texels, errors.

Observers see texels as they see the pieces of an asynchronous copy, which do not count as loads or stores either. How
many requests and sectors a texture unit makes of a fetch is not documented, nor is the order of the texels of a CUDA
array in memory, so neither is counted.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np

from warplab.simulator.errors import SimulatorError, UninitializedRead
from warplab.simulator.memory.device_memory import ORIGIN
from warplab.simulator.memory.lane_access import Addresses
from warplab.simulator.memory.texels import Surface, Texels, Texture
from warplab.simulator.translate.texel_site import TexelSite

# Axes of a geometry, as they are named in PTX, without the layer.
_AXES = {"1d": 1, "a1d": 1, "2d": 2, "a2d": 2, "3d": 3, "cube": 2, "acube": 2}
_WORDS = {Texture: ("texture", "TextureObject"), Surface: ("surface", "SurfaceObject")}

Kind = TypeVar("Kind", Texture, Surface)
Values = list[np.ndarray]


class TexelAccess(Generic[Kind]):
    """Base of `Textures` and `Surfaces`. `lanes` are the group's, None for all lanes of the chunk; in the methods of
    these two, the numbers of those lanes that share a handle."""

    kind: type[Kind]

    def __init__(self, chunk) -> None:
        self.chunk = chunk

    def every(self, lanes) -> np.ndarray:
        return self.chunk.all_lanes if lanes is None else lanes

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
        every, spread = self.every(lanes), self.spread(coordinates)
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
        return kind(what, reason=reason, **self.chunk.where(site, int(lanes[0])))

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

"""The second set of unseen kernels, physics and dense algebra: kinds that Rodinia, PolyBench and Parboil collect."""

from __future__ import annotations

import numpy as np

from evidence.unseen_launches.unseen import Case, UnseenKernel, ceil, floats, int32, launch, zeros

NUMBA = "second_numba_kernels.py"


def hotspot(rows: int, columns: int) -> Case:
    def expected(power, heat, *_):
        t = heat
        for _ in range(4):
            around = np.pad(t, 1, mode="edge")
            near = around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]
            t = t + 0.1 * (power + near - 4 * t + (0.5 - t) * 0.2)
        return {2: t}

    return Case(
        (ceil(columns, 8), ceil(rows, 8)),
        (16, 16),
        lambda: (floats(rows, columns), floats(rows, columns, seed=1), zeros(rows, columns), *int32(rows, columns)),
        expected,
    )


def lava_boxes(side: int) -> Case:
    boxes, alpha = side**3, np.float32(0.5)

    def expected(particle, *_):
        p = particle.reshape(side, side, side, 100, 4).astype(float)
        out = np.zeros(p.shape)
        for z, y, x in np.ndindex(side, side, side):
            near = p[max(z - 1, 0) : z + 2, max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2].reshape(-1, 4)
            d = p[z, y, x][:, None, :3] - near[None, :, :3]
            v = np.exp(-alpha * (d**2).sum(2)) * near[:, 3]
            out[z, y, x, :, 3] = v.sum(1)
            out[z, y, x, :, :3] = (2 * v[..., None] * d).sum(1)
        return {1: out.reshape(boxes * 100, 4)}

    return Case(
        boxes, 128, lambda: (floats(boxes * 100, 4, low=0.0), zeros(boxes * 100, 4), *int32(side), alpha), expected
    )


def coulomb_plane(side: int, atoms: int, rows: int | None = None) -> Case:
    def expected(atom, *_):
        at = np.arange(side) * 0.1
        d2 = (at[None, :, None] - atom[:, 0]) ** 2 + (at[:, None, None] - atom[:, 1]) ** 2 + (5 - atom[:, 2]) ** 2
        return {1: (atom[:, 3] / np.sqrt(d2)).sum(2)}

    return Case(
        (ceil(side, 16), ceil(rows or side, 8)),
        (16, 8),
        lambda: (
            floats(atoms, 4),
            zeros(side, side),
            *(*int32(side, atoms), np.float32(0.1), np.float32(5)),
        ),
        expected,
    )


def lattice_boltzmann(height: int, width: int) -> Case:
    omega = np.float32(1.2)
    directions = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    weights = [4 / 9, *[1 / 9] * 4, *[1 / 36] * 4]

    def expected(f, *_):
        v = np.array([np.roll(f[k], (y, x), (0, 1)) for k, (x, y) in enumerate(directions)], float)
        density = v.sum(0)
        ux = sum(x * v[k] for k, (x, _) in enumerate(directions)) / density
        uy = sum(y * v[k] for k, (_, y) in enumerate(directions)) / density
        out = []
        for k, (x, y) in enumerate(directions):
            u = 3 * (x * ux + y * uy)
            rest = weights[k] * density * (1 + u + u * u / 2 - 1.5 * (ux**2 + uy**2))
            out.append(v[k] + omega * (rest - v[k]))
        return {1: np.array(out)}

    return Case(
        (ceil(width, 128), height),
        128,
        lambda: (
            *(floats(9, height, width, low=0.1), zeros(9, height, width)),
            *(*int32(height, width), omega),
        ),
        expected,
    )


def flow_time_step(n: int) -> Case:
    def expected(fields, area, *_):
        density, x, y, z, energy = fields.astype(float)
        speed2 = (x * x + y * y + z * z) / density**2
        pressure = 0.4 * (energy - 0.5 * density * speed2)
        return {2: 0.5 / (np.sqrt(area) * (np.sqrt(speed2) + np.sqrt(1.4 * pressure / density)))}

    def arguments():
        fields = floats(5, n, low=0.1, high=1.0)
        fields[0] += 1
        fields[4] += 3
        return fields, floats(n, seed=1, low=0.5), zeros(n), *int32(n)

    return Case(ceil(n, 192), 192, arguments, expected)


def convolution_3d(nz: int, ny: int, nx: int) -> Case:
    def expected(a, b, *_):
        total = np.zeros((nz - 2, ny - 2, nx - 2))
        for k in range(27):
            z, y, x = k // 9, k // 3 % 3, k % 3
            total += 0.01 * (k + 1) * a[z : z + nz - 2, y : y + ny - 2, x : x + nx - 2]
        b[1:-1, 1:-1, 1:-1] = total
        return {1: b}

    return Case(
        (ceil(nx, 32), ceil(ny, 8)),
        (32, 8),
        lambda: (floats(nz, ny, nx), zeros(nz, ny, nx), *int32(nz, ny, nx)),
        expected,
    )


def sum_of_gemv(n: int, blocks: int | None = None) -> Case:
    alpha, beta = np.float32(1.5), np.float32(0.5)
    rows = n if blocks is None else blocks * 128

    def expected(a, b, x, *_):
        return {3: alpha * (a.astype(float) @ x) + beta * (b.astype(float) @ x)}

    return Case(
        ceil(rows, 128),
        128,
        lambda: (
            *(floats(rows, n), floats(rows, n, seed=1), floats(n, seed=2), zeros(rows)),
            *(*int32(n), alpha, beta),
        ),
        expected,
    )


def layer_forward(inputs: int, hidden: int) -> Case:
    def expected(x, weight, *_):
        return {2: (weight * x[:, None]).reshape(-1, 16, hidden).sum(1)}

    return Case(
        (inputs // 16, hidden // 16),
        (16, 16),
        lambda: (floats(inputs), floats(inputs, hidden, seed=1), zeros(inputs // 16, hidden), *int32(hidden)),
        expected,
    )


def ray_balls(width: int, height: int, balls: int) -> Case:
    def expected(ball, *_):
        x = (np.arange(width) + 0.5) / width
        y = (np.arange(height) + 0.5) / height
        d2 = (x[None, :, None] - ball[:, 0]) ** 2 + (y[:, None, None] - ball[:, 1]) ** 2
        inside = d2 < ball[:, 3] ** 2
        z = np.where(inside, ball[:, 2] - np.sqrt(np.maximum(ball[:, 3] ** 2 - d2, 0)), 1e30)
        return {2: z.min(2), 3: np.where(inside.any(2), z.argmin(2), -1)}

    def arguments():
        ball = floats(balls, 4, low=0.0)
        ball[:, 3] = 0.02 + 0.1 * ball[:, 3]
        outputs = zeros(height, width), zeros(height, width, dtype=np.int32)
        return ball, outputs[0], outputs[1], *int32(width, height, balls)

    def expected_as_passed(ball, *rest):
        found = expected(ball, *rest)
        return {1: found[2], 2: found[3]}

    return Case((ceil(width, 16), ceil(height, 16)), (16, 16), arguments, expected_as_passed)


def srad(rows: int, columns: int) -> Case:
    def expected(image, _c, out):
        x = image.astype(float)
        around = np.pad(x, 1, mode="edge")
        n, s, w, e = around[:-2, 1:-1] - x, around[2:, 1:-1] - x, around[1:-1, :-2] - x, around[1:-1, 2:] - x
        g2 = (n * n + s * s + w * w + e * e) / (x * x)
        laplace = (n + s + w + e) / x
        q = (0.5 * g2 - laplace**2 / 16) / (1 + 0.25 * laplace) ** 2
        return {2: np.clip(1 / (1 + (q - 0.05) / (0.05 * 1.05)), 0, 1)}

    return Case(
        (ceil(columns, 16), ceil(rows, 16)),
        (16, 16),
        lambda: (floats(rows, columns, low=1.0, high=2.0), np.float32(0.05), zeros(rows, columns)),
        expected,
    )


def fdtd_field(rows: int, columns: int) -> Case:
    def expected(ex, ey, hz):
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
        return {2: hz}

    return Case(
        (ceil(columns, 32), ceil(rows, 8)),
        (32, 8),
        lambda: (floats(rows, columns), floats(rows, columns, seed=1), floats(rows, columns, seed=2)),
        expected,
    )


def covariance(rows: int, columns: int, first: int | None = None) -> Case:
    def expected(data, _out):
        return {1: data.astype(float).T @ data / (rows - 1)}

    return Case(
        (ceil(columns, 16), ceil(first or columns, 16)),
        (16, 16),
        lambda: (floats(rows, columns), zeros(columns, columns)),
        expected,
    )


def symmetric_update(n: int, depth: int, first: int | None = None) -> Case:
    def expected(a, _c):
        return {1: a.astype(float) @ a.T}

    return Case((ceil(n, 32), ceil(first or n, 8)), (32, 8), lambda: (floats(n, depth), zeros(n, n)), expected)


def nearest_places(n: int) -> Case:
    def expected(latitude, longitude, x, y, _out):
        return {4: np.sqrt((latitude - x) ** 2 + (longitude - y) ** 2)}

    return Case(
        ceil(n, 256),
        256,
        lambda: (
            floats(n, high=90.0),
            floats(n, seed=1, high=180.0),
            *(np.float32(30), np.float32(90), zeros(n)),
        ),
        expected,
    )


KERNELS = [
    UnseenKernel(
        "hotspot",
        "second_physics.cu",
        hotspot,
        {"rows": 30, "columns": 41},
        [
            launch({"rows": 512, "columns": 512}),
            launch({"rows": 2048, "columns": 2048}, {"rows": 256}),
            launch({"rows": 8192, "columns": 8192}, {"rows": 64}),
        ],
        warm=True,
        tolerance=1e-4,
    ),
    UnseenKernel(
        "lava_boxes",
        "second_physics.cu",
        lava_boxes,
        {"side": 2},
        [launch({"side": 4}), launch({"side": 10}, sample=64), launch({"side": 20}, sample=64)],
        warm=True,
        tolerance=1e-3,
    ),
    UnseenKernel(
        "coulomb_plane",
        "second_physics.cu",
        coulomb_plane,
        {"side": 30, "atoms": 50},
        [
            launch({"side": 256, "atoms": 1000}, {"rows": 32}, footprint=(16000, 4 * 256**2)),
            launch({"side": 1024, "atoms": 1000}, {"rows": 8}, footprint=(16000, 4 * 1024**2)),
            launch({"side": 2048, "atoms": 4000}, {"rows": 8}, footprint=(64000, 4 * 2048**2)),
        ],
        warm=True,
        tolerance=1e-3,
    ),
    UnseenKernel(
        "lattice_boltzmann",
        "second_physics.cu",
        lattice_boltzmann,
        {"height": 7, "width": 150},
        [
            launch({"height": 256, "width": 256}),
            launch({"height": 1024, "width": 1024}, {"height": 64}),
            launch({"height": 4096, "width": 4096}, {"height": 16}),
        ],
        warm=True,
        tolerance=1e-4,
    ),
    UnseenKernel(
        "flow_time_step",
        "second_physics.cu",
        flow_time_step,
        {"n": 500},
        [launch({"n": 97152}), launch({"n": 2**21}, {"n": 192 * 1024}), launch({"n": 2**25}, {"n": 192 * 1024})],
        tolerance=1e-4,
    ),
    UnseenKernel(
        "convolution_3d",
        "second_physics.cu",
        convolution_3d,
        {"nz": 6, "ny": 12, "nx": 40},
        [
            launch({"nz": 128, "ny": 128, "nx": 128}),
            launch({"nz": 256, "ny": 256, "nx": 256}, {"ny": 64}),
            launch({"nz": 128, "ny": 1024, "nx": 1024}, {"ny": 16}),
        ],
        warm=True,
        tolerance=1e-4,
    ),
    UnseenKernel(
        "sum_of_gemv",
        "second_physics.cu",
        sum_of_gemv,
        {"n": 100},
        [
            launch({"n": 1024}, {"blocks": 2}),
            launch({"n": 4096}, {"blocks": 2}),
            launch({"n": 16384}, {"blocks": 2}),
        ],
        warm=True,
        tolerance=1e-3,
    ),
    UnseenKernel(
        "layer_forward",
        "second_physics.cu",
        layer_forward,
        {"inputs": 48, "hidden": 32},
        [
            launch({"inputs": 65536, "hidden": 16}, {"inputs": 8192}),
            launch({"inputs": 65536, "hidden": 512}, {"inputs": 1024}),
            launch({"inputs": 4096, "hidden": 4096}, {"inputs": 64}),
        ],
        warm=True,
        tolerance=1e-4,
    ),
    UnseenKernel(
        "ray_balls",
        "second_physics.cu",
        ray_balls,
        {"width": 40, "height": 20, "balls": 30},
        [
            launch({"width": 256, "height": 256, "balls": 64}, {"height": 64}),
            launch({"width": 1024, "height": 1024, "balls": 64}, {"height": 32}),
            launch({"width": 3840, "height": 2160, "balls": 256}, sample=64),
        ],
        warm=True,
        tolerance=1e-3,
    ),
    UnseenKernel(
        "srad",
        NUMBA,
        srad,
        {"rows": 20, "columns": 37},
        [
            launch({"rows": 512, "columns": 512}, {"rows": 256}),
            launch({"rows": 2048, "columns": 2048}, {"rows": 64}),
            launch({"rows": 8192, "columns": 8192}, {"rows": 16}),
        ],
        warm=True,
        tolerance=1e-3,
    ),
    UnseenKernel(
        "fdtd_field",
        NUMBA,
        fdtd_field,
        {"rows": 20, "columns": 70},
        [
            launch({"rows": 512, "columns": 512}),
            launch({"rows": 4096, "columns": 4096}, {"rows": 64}),
            launch({"rows": 12288, "columns": 12288}, {"rows": 24}),
        ],
        warm=True,
    ),
    UnseenKernel(
        "covariance",
        NUMBA,
        covariance,
        {"rows": 40, "columns": 35},
        [
            launch({"rows": 256, "columns": 256}, {"first": 64}, footprint=(4 * 256 * 256, 4 * 256 * 256)),
            launch({"rows": 1024, "columns": 1024}, {"first": 16}, footprint=(4 * 1024**2, 4 * 1024**2)),
            launch({"rows": 4096, "columns": 512}, {"first": 16}, footprint=(4 * 4096 * 512, 4 * 512**2)),
        ],
        warm=True,
        tolerance=1e-3,
    ),
    UnseenKernel(
        "symmetric_update",
        NUMBA,
        symmetric_update,
        {"n": 40, "depth": 30},
        [
            launch({"n": 256, "depth": 256}, {"first": 32}, footprint=(4 * 256 * 256, 4 * 256 * 256)),
            launch({"n": 1024, "depth": 512}, {"first": 8}, footprint=(4 * 1024 * 512, 4 * 1024**2)),
        ],
        warm=True,
        tolerance=1e-3,
    ),
    UnseenKernel(
        "nearest_places",
        NUMBA,
        nearest_places,
        {"n": 500},
        [launch({"n": 42764}), launch({"n": 2**22}, {"n": 2**17}), launch({"n": 2**27}, {"n": 2**17})],
        tolerance=1e-4,
    ),
]

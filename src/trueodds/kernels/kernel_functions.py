"""Sum with a Gaussian kernel (Nadaraya–Watson regression), and transform the triweight kernel.

The triweight kernel (35/32) (1 − u²)³ on [−1, 1] has the Fourier transform 105 [(15 − 6z²) sin z − z (15 − z²) cos z]
/ z⁷, which is 1 at z = 0; near 0, a power series is used.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, map_blocks

_NEGLIGIBLE_SQUARED_DISTANCE = 74.0  # in units of h²: e^(−74/2) is less than the rounding error of 1
_POINTS_PER_TASK = 64  # minimum number of points per thread task


@compile_kernel
def _gaussian_sums(points, scores, w, wy, bandwidth, max_excess, out):  # type: ignore[no-untyped-def]
    """Write the results of `gaussian_sums` to `out`, without those too far beyond the nearest (`max_excess`, in h²)."""
    m = scores.shape[0]
    for i in range(points.shape[0]):
        point = points[i]
        next_score = np.searchsorted(scores, point)
        nearest_squared = np.inf
        if next_score < m:
            nearest_squared = scores[next_score] - point
        if next_score > 0:
            nearest_squared = min(nearest_squared, point - scores[next_score - 1])
        nearest_squared = (nearest_squared / bandwidth) ** 2
        low, high = next_score, next_score
        while low > 0 and ((point - scores[low - 1]) / bandwidth) ** 2 <= nearest_squared + max_excess:
            low -= 1
        while high < m and ((scores[high] - point) / bandwidth) ** 2 <= nearest_squared + max_excess:
            high += 1
        mass = events = mass_slope = event_slope = 0.0
        for k in range(low, high):
            distance = (point - scores[k]) / bandwidth
            kernel = np.exp((nearest_squared - distance * distance) / 2.0)
            mass += w[k] * kernel
            events += wy[k] * kernel
            mass_slope -= w[k] * kernel * distance
            event_slope -= wy[k] * kernel * distance
        out[i, 0], out[i, 1], out[i, 2], out[i, 3], out[i, 4] = (
            mass,
            events,
            mass_slope / bandwidth,
            event_slope / bandwidth,
            -nearest_squared / 2.0,
        )


def gaussian_sums(points: Array, scores: Array, w: Array, wy: Array, bandwidth: float) -> Array:
    r"""Return Σwg and Σwyg over the sorted scores at each point x, with g(u) = exp(−u²/2h²) of x − s and bandwidth h.

    The five columns are Σwg, Σwyg and their derivatives in x, all divided by the g of the nearest score, and the
    logarithm of that g. Without this division all terms would underflow for an x far from every score; ratios of sums
    do not change.
    """
    out = np.empty((len(points), 5))
    points, scores, w, wy = (as_plain_array(np.asarray(array, dtype=np.float64)) for array in (points, scores, w, wy))
    map_blocks(
        lambda start, stop: _gaussian_sums(
            points[start:stop], scores, w, wy, bandwidth, _NEGLIGIBLE_SQUARED_DISTANCE, out[start:stop]
        ),
        len(points),
        _POINTS_PER_TASK,
    )
    return out


_N_SERIES_TERMS = 12  # number of terms of the series; the last is below 1e-16 up to _MAX_SERIES_ARGUMENT
_MAX_SERIES_ARGUMENT = 2.0  # argument below which the closed form loses digits, so that the series is used
_MULTIPLES_PER_PASS = 32  # number of multiples whose sines and cosines are computed by the addition theorem


@compile_kernel
def _triweight_series(z2):  # type: ignore[no-untyped-def]
    value = 1.0
    for k in range(_N_SERIES_TERMS, 0, -1):
        value = 1.0 - value * z2 / (2 * k * (2 * k + 7))
    return value


@compile_kernel
def _triweight_closed_form(z, sine, cosine):  # type: ignore[no-untyped-def]
    z2 = z * z
    return 105.0 * ((15.0 - 6.0 * z2) * sine - z * (15.0 - z2) * cosine) / (z2 * z2 * z2 * z)


@compile_kernel
def _fill_triweight_transform(z, out):  # type: ignore[no-untyped-def]
    for i in range(z.shape[0]):
        out[i] = (
            _triweight_series(z[i] * z[i])
            if z[i] < _MAX_SERIES_ARGUMENT
            else _triweight_closed_form(z[i], np.sin(z[i]), np.cos(z[i]))
        )


@compile_kernel
def _fill_transform_of_multiples(z, out):  # type: ignore[no-untyped-def]
    """Write the transform at 0, z, 2z, … to `out` (n, count + 1), one row for each z (n,)."""
    sine, cosine = np.empty(_MULTIPLES_PER_PASS), np.empty(_MULTIPLES_PER_PASS)
    for r in range(z.shape[0]):
        step, row = z[r], out[r]
        for j in range(_MULTIPLES_PER_PASS):
            sine[j], cosine[j] = np.sin(j * step), np.cos(j * step)
        for start in range(0, row.shape[0], _MULTIPLES_PER_PASS):
            start_sine, start_cosine = np.sin(start * step), np.cos(start * step)
            for j in range(min(_MULTIPLES_PER_PASS, row.shape[0] - start)):
                multiple_sine = start_sine * cosine[j] + start_cosine * sine[j]
                multiple_cosine = start_cosine * cosine[j] - start_sine * sine[j]
                row[start + j] = _triweight_closed_form((start + j) * step, multiple_sine, multiple_cosine)
        # The closed form is NaN at 0 and loses digits near it: the series replaces these values.
        k = 0
        while k < row.shape[0] and k * step < _MAX_SERIES_ARGUMENT:
            row[k] = _triweight_series(k * step * k * step)
            k += 1


def triweight_transform(z: Array) -> Array:
    """Return the Fourier transform of the triweight kernel at each z ≥ 0, of the shape of z."""
    out = np.empty(np.size(z))
    _fill_triweight_transform(np.ravel(np.asarray(z, dtype=np.float64)), out)
    return out.reshape(np.shape(z))


def triweight_transform_of_multiples(z: Array, count: int) -> Array:
    """Return the transform (see `triweight_transform`) at 0, z, 2z, …, count · z for each z ≥ 0, (…, count + 1)."""
    out = np.empty((np.size(z), count + 1))
    _fill_transform_of_multiples(np.ravel(np.asarray(z, dtype=np.float64)), out)
    return out.reshape((*np.shape(z), count + 1))

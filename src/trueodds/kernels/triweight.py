"""Evaluate the Fourier transform of the triweight kernel (35/32) (1 − u²)³ on [−1, 1], which is 1 at z = 0.

The closed form is 105 [(15 − 6z²) sin z − z (15 − z²) cos z] / z⁷; near 0, a power series is used.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compile_kernel

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

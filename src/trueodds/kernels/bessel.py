"""What is 105 j₃(z) / z³, the transform of a triweight, of many z or of the multiples of one?"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import compiled

_TERMS = 12  # of the series, whose last is below 1e-16 up to _NEAR
_NEAR = 2.0  # below it the closed form loses digits
_TURN = 32  # multiples whose sines follow from those of two angles


@compiled
def _near(q):  # type: ignore[no-untyped-def]
    """The series in q = z²."""
    value = 1.0
    for k in range(_TERMS, 0, -1):
        value = 1.0 - value * q / (2 * k * (2 * k + 7))
    return value


@compiled
def _closed_form(z, sine, cosine):  # type: ignore[no-untyped-def]
    q = z * z
    return 105.0 * ((15.0 - 6.0 * q) * sine - z * (15.0 - q) * cosine) / (q * q * q * z)


@compiled
def _evaluate(z, out):  # type: ignore[no-untyped-def]
    for i in range(z.shape[0]):
        out[i] = _near(z[i] * z[i]) if z[i] < _NEAR else _closed_form(z[i], np.sin(z[i]), np.cos(z[i]))


@compiled
def _multiples(z, out):  # type: ignore[no-untyped-def]
    sine, cosine = np.empty(_TURN), np.empty(_TURN)
    for r in range(z.shape[0]):
        step, row = z[r], out[r]
        for j in range(_TURN):
            sine[j], cosine[j] = np.sin(j * step), np.cos(j * step)
        for start in range(0, row.shape[0], _TURN):
            s, c = np.sin(start * step), np.cos(start * step)
            for j in range(min(_TURN, row.shape[0] - start)):
                a, b = s * cosine[j] + c * sine[j], c * cosine[j] - s * sine[j]
                row[start + j] = _closed_form((start + j) * step, a, b)
        k = 0
        while k < row.shape[0] and k * step < _NEAR:
            row[k] = _near(k * step * k * step)
            k += 1


def third(z: Array) -> Array:
    """Of each z ≥ 0."""
    out = np.empty(np.size(z))
    _evaluate(np.ravel(np.asarray(z, dtype=np.float64)), out)
    return out.reshape(np.shape(z))


def third_of_multiples(z: Array, count: int) -> Array:
    """Of 0, z, 2z … count · z for each z ≥ 0, (…, count + 1)."""
    out = np.empty((np.size(z), count + 1))
    _multiples(np.ravel(np.asarray(z, dtype=np.float64)), out)
    return out.reshape((*np.shape(z), count + 1))

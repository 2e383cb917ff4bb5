"""Identify what an audit was computed from: a fingerprint of its rows, and the versions of the programs."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping
from hashlib import sha256

import numpy as np
import scipy

import trueodds
from trueodds.data.predictions import Predictions

FINGERPRINT_FORMAT = "trueodds.rows/1"  # name of the encoding of the rows as bytes, which are hashed
_VALUES_PER_BLOCK = 1 << 20  # values that are encoded at a time, so that no large array is copied


def fingerprint_rows(preds: Predictions) -> str:
    """Return a hash of the rows, which does not depend on the format of the file that they came from.

    Parameters
    ----------
    preds : Predictions
        The rows, in their order.

    Returns
    -------
    str
        ``"sha256:"`` and 64 hexadecimal digits.

    Notes
    -----
    These bytes are hashed, in this order:

    - a line of JSON with the format, the kind of predictions, the numbers of rows and classes, and the names of the
      group columns;
    - the probabilities, the outcomes and the weights, if any, each array row by row as little-endian 64-bit
      floating-point numbers;
    - the groups and the clusters, if any, as text with a null character after each value.

    Of two exclusive classes, only the probability of the second one is hashed. Labels are hashed as class numbers, so
    that the names of classes have no influence. Probabilities in single precision have another hash than the
    probabilities in double precision from which they were rounded.

    Examples
    --------
    >>> one_column = fingerprint_rows(Predictions([0, 1], [0.25, 0.5]))
    >>> one_column == fingerprint_rows(Predictions([0, 1], np.array([[0.75, 0.25], [0.5, 0.5]], dtype="float32")))
    True
    >>> one_column == fingerprint_rows(Predictions([0, 1], [0.25, 0.75]))
    False
    """
    header = {
        "format": FINGERPRINT_FORMAT,
        "kind": preds.kind,
        "n": preds.n,
        "k": preds.k,
        "groups": list(preds.group),
    }
    digest = sha256((json.dumps(header) + "\n").encode())
    has_two_columns = preds.p.ndim == 2 and preds.kind == "classes" and preds.k == 2
    p = preds.p[:, 1] if has_two_columns else preds.p
    outcomes = preds.votes if preds.y is None else preds.y
    for values in (p, outcomes, preds.weight):
        for block in _iterate_blocks(values):
            digest.update((np.ascontiguousarray(block, dtype="<f8") + 0.0).tobytes())  # −0 + 0 is 0
    for values in (*preds.group.values(), preds.cluster):
        for block in _iterate_blocks(values):
            digest.update("".join(f"{value}\0" for value in block.tolist()).encode(errors="surrogatepass"))
    return f"sha256:{digest.hexdigest()}"


def _iterate_blocks(values: np.ndarray | None) -> Iterator[np.ndarray]:
    if values is None:
        return
    rows_per_block = max(1, _VALUES_PER_BLOCK // (values.size // len(values)))
    for start in range(0, len(values), rows_per_block):
        yield values[start : start + rows_per_block]


_PROGRAM_NAMES = {"trueodds": "trueodds", "python": "Python", "numpy": "NumPy", "scipy": "SciPy"}


def version_rows(versions: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the name of each program, as it is written in prose, and its version.

    >>> version_rows({"python": "3.13.1", "trueodds": "0.1.0"})
    [('Python', '3.13.1'), ('trueodds', '0.1.0')]
    """
    return [(_PROGRAM_NAMES.get(name, name), version) for name, version in versions.items()]


def program_versions() -> dict[str, str]:
    """Return the versions of trueodds, Python, NumPy and SciPy that computed a result."""
    return {
        "trueodds": trueodds.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }

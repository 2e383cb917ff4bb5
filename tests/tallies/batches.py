"""Predictions to tally: small, decimal and full of ties, or large and sharp."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from trueodds.data.predictions import Predictions
from trueodds.tallies.tally import Tally


def softmaxed(n: int, k: int, seed: int, dtype: Any = np.float64, sharp: float = 2.0, **more: Any) -> Predictions:
    """Calibrated predictions: each label is drawn from its row."""
    rng = np.random.default_rng(seed)
    z = sharp * rng.normal(size=(n, k))
    P = np.exp(z - z.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    y = (P.cumsum(axis=1)[:, :-1] <= rng.random((n, 1))).sum(axis=1)
    return Predictions(y, P.astype(dtype), **more)


@st.composite
def decimal(draw: Any, k: int = 3, weighted: bool | None = None, voted: bool | None = None) -> Predictions:
    """Rows of probabilities i/20 that sum to 1, where ties and edges are."""
    n = draw(st.integers(1, 12))
    cuts = st.lists(st.integers(0, 20), min_size=k - 1, max_size=k - 1).map(sorted)
    rows = [np.diff([0, *draw(cuts), 20]) / 20 for _ in range(n)]
    if draw(st.booleans()) if voted is None else voted:
        votes = st.lists(st.integers(0, 3), min_size=k, max_size=k).filter(any)
        y: Any = [draw(votes) for _ in range(n)]
    else:
        y = [draw(st.integers(0, k - 1)) for _ in range(n)]
    heavy = draw(st.booleans()) if weighted is None else weighted
    w = [draw(st.integers(1, 8)) / 4 for _ in range(n)] if heavy else None
    return Predictions(y, np.array(rows), weight=w, group={"site": [draw(st.sampled_from("ab")) for _ in range(n)]})


def numbers(tally: Tally) -> dict[str, np.ndarray]:
    """Everything in a tally that is a number, by name, with every sum written out."""
    cells = tally.cells.with_explicit_sums()
    arrays = {"n": np.array([tally.n]), "weight": np.array([tally.weight])}
    arrays |= {"index": cells.index, "rows": cells.n, "sums": cells.sums}
    if tally.null is not None:
        arrays["null"] = tally.null
    for name, sums in tally.scores.items():
        arrays[name] = np.array([getattr(sums, field) for field in sums.__slots__])
    arrays["counts"] = np.array([getattr(tally.counts, field) for field in tally.counts.__slots__])
    for name, joint in tally.joint.items():
        arrays |= {f"{name}.{field}": getattr(joint, field) for field in ("keys", "n", "w", "ww", "wp", "wy")}
    for column, values in tally.groups.items():
        for value, part in values.items():
            arrays |= {f"{column}.{value}.{key}": array for key, array in numbers(part).items()}
    return arrays


def same(a: Tally, b: Tally, rtol: float = 1e-12, atol: float = 1e-12) -> None:
    """Equal to rounding: sums of n values in another order differ by at most n·eps of their absolute sum."""
    left, right = numbers(a), numbers(b)
    assert left.keys() == right.keys()
    for key in left:
        assert left[key].shape == right[key].shape, key
        np.testing.assert_allclose(left[key], right[key], rtol=rtol, atol=atol, err_msg=key)

"""What every engine must agree on with rows in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from trueodds import InputError, Predictions, measure, test
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS
from trueodds.tallies.tally import Tally

NO_ROWS = ("TO403", "TO404", "TO405", "TO406", "TO204", "TO205")  # what needs rows, a grid, or another kind of data


def table(n: int = 3_000, k: int = 3, *, weight: bool = False, seed: int = 0) -> pd.DataFrame:
    """Labels by name, probabilities of mild overconfidence, a group, and weights where they are asked for."""
    draw = np.random.default_rng(seed)
    truth = draw.dirichlet(np.ones(k), n)
    y = (truth.cumsum(axis=1)[:, :-1] <= draw.random(n)[:, None]).sum(axis=1)
    P = truth**1.5
    P /= P.sum(axis=1, keepdims=True)
    frame = pd.DataFrame(P, columns=[f"p_{name}" for name in "abcdefghij"[:k]])
    frame["label"] = np.array(list("abcdefghij"))[y]
    frame["site"] = draw.choice(["north", "south"], n)
    if weight:
        frame["w"] = draw.integers(1, 5, n) / 2
    return frame


def voted(n: int = 300) -> tuple[pd.DataFrame, Tally]:
    """Rows of votes and logits, and the tally of the same rows as arrays."""
    draw = np.random.default_rng(1)
    votes, z = draw.multinomial(9, [0.2, 0.3, 0.5], n).astype(float), draw.normal(size=(n, 3))
    frame = pd.DataFrame(np.hstack([votes, z]), columns=[f"{kind}_{name}" for kind in "vz" for name in "abc"])
    return frame, Tally.from_predictions(Predictions.from_logits(votes, z, classes=list("abc")))


def in_memory(frame: pd.DataFrame) -> Tally:
    """The tally of the rows as arrays."""
    names = [name for name in frame.columns if name.startswith("p_")]
    extras: dict[str, Any] = {"group": {"site": frame["site"].to_numpy(dtype=str)}}
    if "w" in frame:
        extras["weight"] = frame["w"].to_numpy()
    classes = [name[2:] for name in names]
    return Tally.from_predictions(
        Predictions(frame["label"].to_numpy(dtype=str), frame[names].to_numpy(), classes=classes, **extras)
    )


def same(a: Tally, b: Tally) -> None:
    """All sums agree to 1e-12 of their size, counts exactly, and so do those of the groups."""
    assert (a.n, a.classes, a.lenses, sorted(a.groups)) == (b.n, b.classes, b.lenses, sorted(b.groups))
    np.testing.assert_array_equal(a.cells.index, b.cells.index)
    np.testing.assert_array_equal(a.cells.n, b.cells.n)
    np.testing.assert_allclose(a.cells.sums, b.cells.sums, rtol=1e-12, atol=1e-300)
    for name in a.scores:
        np.testing.assert_allclose(a.score(name)["ws"], b.score(name)["ws"], rtol=1e-12)
    for column in a.groups:
        for value, part in a.groups[column].items():
            same(part, b.groups[column][value])


def answers(tally: Tally) -> dict[str, float]:
    """Every estimator and every test that a tally can answer, by name."""
    values = {}
    for name in ESTIMATORS.names():
        with _but_for_rows():
            values[name] = float(measure(tally, name, interval=None).value)
    for name in TESTS.names():
        with _but_for_rows():
            verdict = test(tally, name, **({"resamples": 99} if TESTS.has_setting(name, "resamples") else {}))
            values[f"{name}: statistic"], values[f"{name}: p"] = float(verdict.statistic), float(verdict.pvalue)
    return values


@contextmanager
def _but_for_rows() -> Iterator[None]:
    try:
        yield
    except InputError as problem:
        if problem.code not in NO_ROWS:
            raise

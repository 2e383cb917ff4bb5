"""What does a random forest say of a person's weight? The obesity data, their splits, and the forest's votes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.kernels import threads
from trueodds_studies.data import columns

FILE = "obesity_features.parquet"
LABEL = "NObeyesdad"
FEATURES = (
    "Gender", "Age", "Height", "Weight", "family_history_with_overweight", "FAVC", "FCVC", "NCP", "CAEC", "SMOKE", "CH2O",
    "SCC", "FAF", "TUE", "CALC", "MTRANS",
)  # fmt: skip
WITHOUT: dict[str, tuple[str, ...]] = {
    "all": (),
    "no Weight": ("Weight",),
    "no Weight, no Height": ("Weight", "Height"),
}
"""The sets of features: the classes are ranges of weight over squared height, so that all make it easy."""
QUARTER = 0.25  # of the rows is put aside, twice


@dataclass(frozen=True)
class People:
    """Rows of the data as numbers."""

    X: Array  # (n, features)
    y: Array  # (n,) 0-based
    classes: tuple[str, ...]  # in alphabetical order

    @classmethod
    def of(cls, features: str, data: str | Path | None) -> People:
        """Numbers as they are, then one column of 0 and 1 for each word of each column of words."""
        table = columns(FILE, data, *FEATURES, LABEL)
        names, y = np.unique(table.pop(LABEL).astype(str), return_inverse=True)
        selected = {name: column for name, column in table.items() if name not in WITHOUT[features]}
        numbers = [column[:, None] for column in selected.values() if column.dtype != object]
        words = [column.astype(str)[:, None] for column in selected.values() if column.dtype == object]
        hot = [(column == np.unique(column)).astype(np.float64) for column in words]
        return cls(np.concatenate([*numbers, *hot], axis=1), y, tuple(names.tolist()))


@dataclass(frozen=True)
class Voted:
    """Predictions of a forest for rows that it was not grown on, in two parts."""

    learn: Predictions  # to fit a recalibration on
    held_out: Predictions  # to judge it on


def parted(n: int, seed: int) -> tuple[Array, Array, Array]:
    """The rows that the forest is grown on, that a recalibration is fitted on, and that it is judged on."""
    grown, aside = train_test_split(np.arange(n), test_size=QUARTER, random_state=seed)
    learn, held_out = train_test_split(aside, test_size=QUARTER, random_state=seed)
    return grown, learn, held_out


def voted(people: People, trees: int, seed: int) -> Voted:
    """A quarter of the rows put aside and predicted by a forest grown on the others, a quarter of those to judge on.

    Of 2,111 rows these are 1,583, 396 and 132, as in the paper.
    """
    grown, learn, held_out = parted(len(people.y), seed)
    forest = RandomForestClassifier(trees, n_jobs=threads(), random_state=seed).fit(people.X[grown], people.y[grown])
    forest.n_jobs = 1  # threads add the trees up in the order in which they finish, so that the last digit varies
    parts = (Predictions(people.y[rows], forest.predict_proba(people.X[rows])) for rows in (learn, held_out))
    return Voted(*parts)


def zeros(preds: Predictions) -> dict[str, float]:
    """Which share of the probabilities is exactly 0, and of how many outcomes."""
    P = preds.P
    assert preds.y is not None
    return {"zeros": float((P == 0).mean()), "true zeros": float((P[np.arange(preds.n), preds.y] == 0).sum())}

"""Which rows show the six predictions? Labels drawn from the laws of the paper's table, or from what was said."""

from __future__ import annotations

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.registry import near
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds_studies.toys.six import OTHERS, PRINTED, TABLE

LENSES = ("confidence", "top-label", "classwise", *PRINTED[1:], *OTHERS, "canonical")
"""Every lens that three classes have; `positive` is for two."""

COPIES = 50  # of the sixty rows whose shares are those of the table: all that a statistic can know, 3,000 rows
_ALL = 10  # shares of the table are tenths
_OWN = 6  # a stream of their own: [0, 0, 0] would be that of rng=0, from which tests redraw labels


def known(name: str) -> str:
    """The name itself; an unknown lens is an InputError."""
    if name not in LENSES:
        raise InputError("TO201", "The study looks through no lens of that name.", repr(name), near(name, LENSES))
    return name


def predicted_and_true(calibrated: bool = False) -> tuple[Array, Array]:
    """What is said of the three classes and what then comes, (6, 3) each; of a calibrated model that is the same."""
    predicted = np.array(list(TABLE))
    return predicted, predicted if calibrated else np.array(list(TABLE.values()))


def drawn(rows: int, seed: int, number: int, *, calibrated: bool = False) -> Predictions:
    """A data set: each prediction equally often, labels drawn from its law, in random order.

    The order is random because some members pair neighboring rows, and neighbors with the same prediction would be
    another experiment.
    """
    rng = np.random.default_rng([seed, number, int(calibrated), _OWN])
    predicted, true_probs = predicted_and_true(calibrated)
    which = rng.permutation(np.arange(rows) % len(predicted))
    y = (true_probs.cumsum(axis=1)[which] <= rng.random(rows)[:, None]).sum(axis=1)
    return Predictions(np.minimum(y, 2), predicted[which])  # the last sum is 1 but for rounding


def exact_rows(*, calibrated: bool = False) -> Predictions:
    """Rows that came exactly as the laws say: no chance is left in their shares."""
    predicted, true_probs = predicted_and_true(calibrated)
    times = np.rint(_ALL * COPIES * true_probs).astype(int)
    which = np.repeat(np.arange(len(predicted)), times.sum(axis=1))
    y = np.concatenate([np.repeat(np.arange(3), counts) for counts in times])
    order = np.random.default_rng(0).permutation(len(y))
    return Predictions(y[order], predicted[which[order]])

"""What if the truth were a little off what was said? Families of truths around the predictions, by size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit, logit

from trueodds.core.settings import Settings
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import log_probabilities
from trueodds.data.predictions import Predictions

Kind = Literal["temperature", "shift"]
Direction = Literal["over", "under"]
MAX_SIZE = 20.0  # exp(−20) is no confidence at all


@dataclass(frozen=True)
class Distortion(Settings):
    r"""True probabilities r around the stated ones p: none at size 0, and the more the larger x > 0.

    .. math:: r \propto p^{t}, \quad t = e^{-x} \text{ (over)}, \; e^{x} \text{ (under)}

    is the `temperature`: what was said is too sure (`over`) or not sure enough (`under`). A `shift` lowers (`over`)
    or raises (`under`) by x the log-odds of the second of two classes, of the most probable of several, of each label
    where these are independent.

    >>> preds = Predictions([0, 1], [0.2, 0.9])
    >>> Distortion("shift").truth(preds, 1.0)[:, 1].round(3).tolist()
    [0.084, 0.768]
    """

    kind: Kind = "temperature"
    direction: Direction = "over"

    def truth(self, preds: Predictions, x: float) -> Array:
        """r, (n, K): the probability of every class, or of every independent label."""
        sign = -1.0 if self.direction == "over" else 1.0
        if preds.kind == "multilabel":
            z = logit(preds.P.astype(np.float64))
            return np.asarray(expit(z + sign * x if self.kind == "shift" else z * np.exp(sign * x)))
        z = log_probabilities(preds)
        if self.kind == "shift":
            which = np.argmax(z, axis=1) if preds.k > 2 else 1
            z[np.arange(len(z)), which] += sign * x
        else:
            z *= np.exp(sign * x)
        r = np.exp(z - z.max(axis=1, keepdims=True))
        return np.asarray(r / r.sum(axis=1, keepdims=True))

    def fixed(self, preds: Predictions) -> int:
        """How many rows no distortion moves, since they say exactly 0 and 1."""
        if preds.kind == "multilabel":
            return int(((preds.P == 0) | (preds.P == 1)).all(axis=1).sum())
        return int((np.isneginf(log_probabilities(preds)).sum(axis=1) == preds.k - 1).sum())

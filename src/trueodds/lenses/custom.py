"""Custom lens: a user-defined function that maps class probabilities and labels to those of other outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses.base import Lens, OutcomeCodes

Psi = Callable[[Array, Array], tuple[Array, Array]]  # (Y, P) -> (probabilities, outcomes), see `Custom`


@dataclass(frozen=True, eq=False)
class Custom(Lens):
    """A user-defined lens ψ: a callable (Y, P) → (probabilities (n, m), outcomes (n, m)).

    P (n, K) are the class probabilities, and Y (n, K) the labels as shares of each class, one-hot for hard labels. The
    result has the probabilities of m other outcomes, such as groups of classes, and which of them occurred ("induced"
    probabilities and outcomes). For a one-hot Y the outcomes must be one-hot too, so that each label has one outcome.
    """

    psi: Psi

    @property
    def name(self) -> str:  # type: ignore[override]
        return str(getattr(self.psi, "__name__", type(self.psi).__name__))

    def probabilities(self, preds: Predictions) -> list[Array]:
        """Return the induced probabilities (n, m); of two outcomes those of the second (n,), for a binary view."""
        induced = self._call_psi(preds.Y, preds.P)[0]
        if induced.ndim != 2 or len(induced) != preds.n or induced.shape[1] < 2:
            raise InputError(
                "TO204",
                "ψ must return probabilities and outcomes of shape (n, m) with m ≥ 2.",
                f"shape {induced.shape} for {preds.n:,} rows",
                "Return the probability of every induced outcome.",
            )
        invalid = np.abs(induced.sum(axis=1) - 1) > 1e-5
        if not np.isfinite(induced).all() or induced.min() < -1e-5 or invalid.any():  # 1 − p may round below 0
            raise InputError(
                "TO204",
                "The probabilities that ψ induces must be ≥ 0 and sum to 1.",
                f"a smallest value of {induced.min():.6g}, {int(invalid.sum()):,} rows that do not sum to 1",
                "Add an outcome for the rest.",
            )
        return [induced[:, 1]] if induced.shape[1] == 2 else [induced]

    def outcome_codes(self, preds: Predictions) -> list[OutcomeCodes]:
        """Return the induced outcome of every label in each row, as ψ maps a row of this label."""
        code = np.empty((preds.n, preds.k), dtype=np.int64)
        for c in range(preds.k):
            one_hot = np.zeros((preds.n, preds.k))
            one_hot[:, c] = 1
            probs, outcomes = self._call_psi(one_hot, preds.P)
            if outcomes.ndim != 2 or outcomes.shape != probs.shape or not _is_one_hot(outcomes):
                raise InputError(
                    "TO204",
                    "For a hard label ψ must return one outcome per row, one-hot.",
                    f"{self.name} for class {preds.classes[c]}",
                    "Every label must lead to exactly one induced outcome.",
                )
            code[:, c] = np.argmax(outcomes, axis=1)
        return [OutcomeCodes(code)]

    def complement_source(self, preds: Predictions, i: int) -> None:
        """None, because the probabilities of ψ need not be sums of class probabilities."""
        return

    def _call_psi(self, Y: Array, P: Array) -> tuple[Array, Array]:
        """Induced probabilities and outcomes, both (n, m), for outcomes Y and probabilities P, both (n, K)."""
        try:
            probs, outcomes = self.psi(Y, P)
            return np.asarray(probs, dtype=np.float64), np.asarray(outcomes, dtype=np.float64)
        except (TypeError, ValueError) as problem:
            raise InputError(
                "TO204",
                "ψ takes (Y, P), both (n, K), and returns two arrays of numbers.",
                f"{self.name}: {problem}",
                "Return (probabilities, outcomes), both (n, m).",
            ) from problem


def _is_one_hot(outcomes: Array) -> bool:
    return bool(((outcomes == 0) | (outcomes == 1)).all() and (outcomes.sum(axis=1) == 1).all())

"""Lens for testing that the calibration function equals a given function ρ instead of the identity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.settings import call_user_function
from trueodds.core.typing import Array
from trueodds.data.labels import UNKNOWN_LABEL
from trueodds.data.predictions import Predictions
from trueodds.lenses.base import Lens, OutcomeCodes
from trueodds.lenses.view import View


def apply_hypothesis(
    preds: Any, rho: Any, lenses: Sequence[Lens], redraw: str = "labels"
) -> tuple[Predictions, list[Lens]]:
    """Replace the predictions by ρ(P), and return lenses that still bin rows by P.

    ρ, the hypothetical calibration function, is a function of P (n, K), or an object with `predict_proba` such as a
    fitted calibrator. For two classes it may return one column. If the hypothesis is true, ρ(P) are the probabilities
    of the labels, so a test of the calibration of ρ(P) tests the hypothesis.

    >>> from trueodds.lenses.lens_by_name import as_lens
    >>> preds = Predictions([0, 1], [0.2, 0.6])
    >>> halved, (lens,) = apply_hypothesis(preds, lambda P: P[:, 1] / 2, [as_lens("positive")])
    >>> (view,) = lens.views(halved)
    >>> view.p.tolist(), view.partition_values.tolist()
    ([0.1, 0.3], [0.2, 0.6])
    """
    if not isinstance(preds, Predictions):
        raise InputError(
            "TO403", "A hypothesis other than 'calibrated' needs the rows.", "a tally", "Use ⟨mode='exact'⟩."
        )
    if redraw == "both":
        raise InputError(
            "TO205",
            "⟨redraw='both'⟩ draws rows of the model's own predictions.",
            "⟨redraw='both'⟩ with hypothesis=",
            "Leave redraw out: labels are drawn from the given function.",
        )
    predicted = _evaluate_hypothesis(preds, rho)
    if preds.kind == "multilabel":
        assert preds.y is not None
        null_preds = Predictions.from_multilabel(
            preds.y,
            predicted,
            weight=preds.weight,
            cluster=preds.cluster,
            classes=preds.classes,
            missing=UNKNOWN_LABEL,
            copy=False,
        )
    elif preds.kind == "confidence":
        assert preds.y is not None
        null_preds = Predictions.from_confidence(
            predicted[:, 1], preds.y, weight=preds.weight, cluster=preds.cluster, copy=False
        )
    else:
        null_preds = Predictions(
            _labels_or_votes(preds),
            predicted,
            weight=preds.weight,
            group=preds.group or None,
            cluster=preds.cluster,
            classes=preds.classes,
            copy=False,
        )
    return null_preds, [HypothesisLens(lens, preds) for lens in lenses]


@dataclass(frozen=True, eq=False)
class HypothesisLens(Lens):
    """A lens that bins rows by the model's predictions and compares outcomes with ρ(P)."""

    lens: Lens
    preds: Predictions  # the model's original predictions

    @property
    def name(self) -> str:  # type: ignore[override]
        return str(self.lens)

    @property
    def aggregate(self) -> str:  # type: ignore[override]
        return self.lens.aggregate

    def outcome_codes(self, preds: Predictions) -> list[OutcomeCodes]:
        """Mapping of labels by the underlying lens, which may depend on the model's predictions."""
        return self.lens.outcome_codes(self.preds)

    def class_columns(self, preds: Predictions) -> list[int]:
        return self.lens.class_columns(self.preds)

    def views(self, preds: Predictions) -> tuple[View, ...]:
        """Views of ρ(P), the probabilities of `preds`, against the outcomes, binned by the model's predictions."""
        labeled_preds = self.preds if preds.votes is not None or preds.y is None else self.preds.with_labels(preds.y)
        base_views = self.lens.views(labeled_preds)
        P = np.asarray(preds.P, dtype=np.float64)
        if preds.kind == "multilabel":
            predicted = [P[:, c] for c in self.class_columns(preds)]
        else:
            widths = [view.p.shape[1] if view.joint else 1 for view in base_views]
            predicted = [codes.outcome_shares(P, m) for codes, m in zip(self.outcome_codes(preds), widths, strict=True)]
        return tuple(
            View(
                p,
                view.y,
                None if view.is_unweighted else view.w,
                partition_values=view.p,
                name=view.name,
                classes=view.classes,
                votes=view.votes,
            )
            for p, view in zip(predicted, base_views, strict=True)
        )

    def notes(self, preds: Predictions) -> list[Note]:
        return self.lens.notes(self.preds)


def _labels_or_votes(preds: Predictions) -> Any:
    """Class names (n,), or numbers of votes (n, K), as `Predictions` takes them."""
    if preds.votes is not None:
        return preds.votes if preds.counts is None else preds.votes * preds.counts[:, None]
    assert preds.y is not None
    return np.asarray(preds.classes, dtype=object)[preds.y]


def _evaluate_hypothesis(preds: Predictions, rho: Any) -> Array:
    """ρ(P), (n, K) float64, checked; `rho` is a function or has `predict_proba`."""
    function: Callable[[Array], Any] | None = getattr(rho, "predict_proba", None) or (rho if callable(rho) else None)
    if function is None:
        raise InputError(
            "TO203",
            "hypothesis is 'calibrated', a fitted calibrator, or a function of the probabilities.",
            describe(rho),
            "For instance hypothesis=to.fit(others, 'temperature'), or lambda P: P**2 / (P**2).sum(axis=1,"
            " keepdims=True).",
        )
    P = np.asarray(call_user_function("hypothesis", function, preds.P))
    if P.ndim == 1 and preds.k == 2 and preds.kind != "multilabel":
        P = np.stack([1 - P, P], axis=1)
    if P.shape != preds.P.shape or P.dtype.kind not in "fiub":
        raise InputError(
            "TO203",
            "A calibration function must return the class probabilities of each row.",
            f"{P.dtype} of shape {P.shape} for {preds.P.shape}",
            "Return an array in the shape of P.",
        )
    return P.astype(np.float64)

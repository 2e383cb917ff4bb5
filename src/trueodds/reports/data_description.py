"""Describe the audited data: size, classes, means, weights and zeros, with the notes on the data."""

from __future__ import annotations

from typing import Any

from trueodds.core.errors import Note
from trueodds.data.log_probabilities import exact_zeros
from trueodds.data.plausibility import plausibility_notes
from trueodds.data.predictions import Predictions
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Positive
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.ranked import Confidence
from trueodds.lenses.view import View
from trueodds.tallies.tally import Tally


def describe_data(rows: Predictions | Tally, source: str) -> dict[str, Any]:
    """The description of the data: size, classes, means, weights and zeros."""
    confidence = _views(rows, Confidence())[0] if rows.kind != "multilabel" else None
    positive = _views(rows, Positive())[0] if rows.kind == "classes" and rows.k == 2 else None
    common = {
        "source": source,
        "n": rows.n,
        "k": rows.k,
        "kind": rows.kind,
        "classes": [str(name) for name in rows.classes],
        "mean_confidence": _mean(confidence, "p"),
        "accuracy": _mean(confidence, "y"),
        "mean_prediction": _mean(positive, "p"),  # of the second of two classes
        "event_rate": _mean(positive, "y"),
    }
    if isinstance(rows, Tally):
        return common | {
            "weighted": rows.weight != rows.n,
            "weight": rows.weight,
            "votes": rows.counts.voted > 0,
            "clusters": None,
            "group_columns": list(rows.groups),
            "resolution": rows.resolution,
            "zeros": rows.counts.zeros,
            "true_class_zeros": rows.counts.true_zeros,
        }
    return common | {
        "weighted": rows.weight is not None,
        "weight": float(rows.w.sum()),
        "votes": rows.votes is not None,
        "clusters": int(rows.cluster.max()) + 1 if rows.cluster is not None else None,
        "group_columns": list(rows.group),
        "resolution": "exact: every row in memory",
        **_zeros(rows),
    }


def rows_notes(rows: Predictions | Tally) -> list[Note]:
    """The notes on the data, without those of methods."""
    lens = default_lens(rows)
    return (
        list(rows.notes(lens))
        if isinstance(rows, Tally)
        else [*rows.notes, *plausibility_notes(rows), *lens.notes(rows)]
    )


def _views(rows: Predictions | Tally, lens: Lens) -> Any:
    return rows.views(lens) if isinstance(rows, Tally) else lens.views(rows)


def _mean(view: View | None, name: str) -> float | None:
    return None if view is None else float((view.w * getattr(view, name)).sum() / view.total)


def _zeros(preds: Predictions) -> dict[str, int]:
    """Count probabilities of exactly 0, and rows whose observed outcome had one; rows of weight 0 are ignored."""
    counted = preds.w > 0
    p, y = preds.p[counted], preds.Y[counted]
    if preds.kind == "multilabel":
        impossible_events = ((p == 0) & (y > 0)) | ((p == 1) & (y < 1))
        return {"zeros": int(((p == 0) | (p == 1)).sum()), "true_class_zeros": int(impossible_events.any(axis=1).sum())}
    zero = exact_zeros(preds)[counted]
    return {"zeros": int(zero.sum()), "true_class_zeros": int((zero & (y > 0)).any(axis=1).sum())}

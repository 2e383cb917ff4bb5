"""Describe the audited data: size, classes, means, weights and zeros, with notes such as that on duplicate rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.core.errors import Note
from trueodds.data.log_probabilities import exact_zeros
from trueodds.data.plausibility import plausibility_notes
from trueodds.data.predictions import Predictions
from trueodds.lenses.classes import Positive
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.ranked import Confidence
from trueodds.lenses.view import View
from trueodds.reports.provenance import fingerprint_rows
from trueodds.tallies.tally import Tally, lens_views


def describe_data(rows: Predictions | Tally, source: str) -> dict[str, Any]:
    """Return the section `data` of an audit as a JSON object: size, classes, means, weights and zeros.

    `source` is the name of the data, such as that of the file.
    """
    confidence = lens_views(rows, Confidence())[0] if rows.kind != "multilabel" else None
    positive = lens_views(rows, Positive())[0] if rows.kind == "classes" and rows.k == 2 else None
    has_votes = rows.counts.voted > 0 if isinstance(rows, Tally) else rows.votes is not None
    share_of_correct = _weighted_mean(confidence, "y")
    common = {
        "source": source,
        "n": rows.n,
        "k": rows.k,
        "kind": rows.kind,
        "classes": [str(name) for name in rows.classes],
        "event": None if positive is None else str(rows.classes[1]),
        "mean_confidence": _weighted_mean(confidence, "p"),
        "accuracy": share_of_correct,
        "vote_share": share_of_correct if has_votes else None,  # what `accuracy` is with votes
        "mean_prediction": _weighted_mean(positive, "p"),  # of the second of two classes
        "event_rate": _weighted_mean(positive, "y"),
    }
    if isinstance(rows, Tally):
        return common | {
            "weighted": rows.weight != rows.n,
            "weight": rows.weight,
            "votes": has_votes,
            "clusters": None,
            "fingerprint": None,
            "group_columns": list(rows.groups),
            "resolution": rows.resolution,
            "logits": None,
            "zeros": rows.counts.zeros,
            "true_class_zeros": rows.counts.true_zeros,
        }
    return common | {
        "weighted": rows.weight is not None,
        "weight": float(rows.w.sum()),
        "votes": has_votes,
        "clusters": int(rows.cluster.max()) + 1 if rows.cluster is not None else None,
        "fingerprint": fingerprint_rows(rows),
        "group_columns": list(rows.group),
        "resolution": "exact: every row in memory",
        "logits": None if rows.logits is None else "log odds" if rows.logits.ndim == 1 else "logits",
        **_count_zeros(rows),
    }


def data_notes(rows: Predictions | Tally) -> list[Note]:
    """Return the notes on the data: those of validation, of the plausibility checks and of the default lens."""
    lens = default_lens(rows)
    if isinstance(rows, Tally):
        return list(rows.notes(lens))
    return [*rows.notes, *plausibility_notes(rows), *_log_odds_notes(rows), *lens.notes(rows)]


def _log_odds_notes(preds: Predictions) -> list[Note]:
    """Return a note if the predictions are scores that were read as log odds, because margins look alike."""
    if preds.logits is None or preds.logits.ndim > 1:
        return []
    text = (
        "The scores were read as log odds: the probability is 1/(1 + exp(−score)). Margins, such as those of a support"
        " vector machine, are no log odds, and the reported errors are then those of this reading: recalibrate them"
        " first, for example by platt."
    )
    return [Note("TN157", text)]


def _weighted_mean(view: View | None, array_name: str) -> float | None:
    """Return the weighted mean of the array `p` or `y` of a view; None without a view."""
    return None if view is None else float((view.w * getattr(view, array_name)).sum() / view.total)


def _count_zeros(preds: Predictions) -> dict[str, int]:
    """Count the probabilities of exactly 0, and the rows whose outcome had such a probability.

    For independent labels, a probability of 1 is a probability 0 of the opposite outcome. Rows of weight 0 are ignored.
    """
    has_weight = preds.w > 0
    weighted_rows = slice(None) if has_weight.all() else has_weight
    p, y = preds.p[weighted_rows], preds.Y[weighted_rows]
    if preds.kind == "multilabel":
        impossible_events = ((p == 0) & (y > 0)) | ((p == 1) & (y < 1))
        return {"zeros": int(((p == 0) | (p == 1)).sum()), "true_class_zeros": int(impossible_events.any(axis=1).sum())}
    is_zero = exact_zeros(preds)[weighted_rows]
    zeros = int(is_zero.sum())
    return {"zeros": zeros, "true_class_zeros": int((is_zero & (y > 0)).any(axis=1).sum()) if zeros else 0}


# Copies of rows are noted between these limits. With more of them scores are coarse, and equal rows need not be copies.
MIN_DISTINCT = 0.9  # share of the rows that are no copies
MIN_COPIES = 0.005  # share of the rows that are copies
MIN_ROWS_WITH_COPIES = 100  # number of rows
KEY_TOLERANCE = 1e-9  # difference of the keys of copies, far beyond rounding


def duplicate_notes(preds: Predictions) -> list[Note]:
    """Return a note if some rows have the prediction and outcome of another row, although most rows are distinct.

    There is no note if clusters are given, because rows of a cluster may be equal.
    """
    if preds.cluster is not None or preds.n < MIN_ROWS_WITH_COPIES or preds.p.ndim == 1 or preds.y is None:
        return []
    # A random projection of the predictions plus a random offset for the outcome: different rows have different keys.
    rng = np.random.default_rng(0)
    row_keys = np.asarray(preds.p, dtype=np.float64) @ rng.standard_normal(preds.p.shape[1])
    outcome_offsets = 10 * rng.standard_normal(preds.k)
    row_keys += outcome_offsets[preds.y] if preds.y.ndim == 1 else preds.y @ outcome_offsets
    order = np.argsort(row_keys)
    # Copies have equal keys up to rounding, so sorting makes them neighbors. The rows themselves are then compared.
    is_near = np.diff(row_keys[order]) <= KEY_TOLERANCE
    row, previous_row = order[1:][is_near], order[:-1][is_near]
    outcomes = preds.y.reshape(preds.n, -1)
    same_outcome = (outcomes[row] == outcomes[previous_row]).all(axis=1)
    count = int(((preds.p[row] == preds.p[previous_row]).all(axis=1) & same_outcome).sum())
    if count <= MIN_COPIES * preds.n or count > (1 - MIN_DISTINCT) * preds.n:
        return []
    text = (
        f"{count:,} rows have the same prediction and outcome as another row. If a case was counted twice, drop the"
        " copies or pass cluster=."
    )
    return [Note("TN144", text)]

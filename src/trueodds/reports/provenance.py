"""Describe what an audit was computed from: the data and a fingerprint of their rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
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
from trueodds.reports.audit_sections import AuditData
from trueodds.tallies.tally import Tally, lens_views


def describe_data(rows: Predictions | Tally, source: str) -> AuditData:
    """Return the description of the data: size, classes, means, weights and zeros.

    `source` is the name of the data, such as that of the file.
    """
    confidence = lens_views(rows, Confidence())[0] if rows.kind != "multilabel" else None
    positive = lens_views(rows, Positive())[0] if rows.kind == "classes" and rows.k == 2 else None
    share_of_correct = _weighted_mean(confidence, "y")
    sums: dict[str, Any]  # what is known of rows and of tallies in different ways
    if isinstance(rows, Tally):
        sums = {
            "votes": rows.counts.voted > 0,
            "weighted": rows.weight != rows.n,
            "weight": rows.weight,
            "group_columns": tuple(rows.groups),
            "resolution": rows.resolution,
            "zeros": rows.counts.zeros,
            "true_class_zeros": rows.counts.true_zeros,
        }
    else:
        sums = {
            "votes": rows.votes is not None,
            "weighted": rows.weight is not None,
            "weight": float(rows.w.sum()),
            "clusters": int(rows.cluster.max()) + 1 if rows.cluster is not None else None,
            "fingerprint": fingerprint_rows(rows),
            "group_columns": tuple(rows.group),
            "resolution": "exact: every row in memory",
            "logits": None if rows.logits is None else "log odds" if rows.logits.ndim == 1 else "logits",
            **_count_zeros(rows),
        }
    return AuditData(
        source=source,
        n=rows.n,
        k=rows.k,
        kind=rows.kind,
        classes=tuple(str(name) for name in rows.classes),
        event=None if positive is None else str(rows.classes[1]),
        mean_confidence=_weighted_mean(confidence, "p"),
        accuracy=share_of_correct,
        vote_share=share_of_correct if sums["votes"] else None,
        mean_prediction=_weighted_mean(positive, "p"),
        event_rate=_weighted_mean(positive, "y"),
        **sums,
    )


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
        " vector machine, are not log odds, and the reported errors are then errors of this reading: recalibrate them"
        " first, for example by platt."
    )
    return [Note("TN157", text)]


def _weighted_mean(view: View | None, array_name: str) -> float | None:
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

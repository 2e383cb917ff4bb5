"""What is there to say of one net on one split? Every method's row, the parameters, what is left, and the floor's part."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trueodds.api.verbs import fit, test
from trueodds.core.results import Verdict
from trueodds.data.predictions import Predictions
from trueodds_studies.comparators import METHODS, MIN_PROB, Method, method_rows

ON_P = Method("evidential (Xu) on p", "evidential", {"on": "probabilities"})
EVERY = (*METHODS, ON_P)
"""The methods of all such tables, and Xu's once more, on the probabilities themselves instead of their logs."""

LEFT = ("temperature on log p", "MCLLO")  # of which it is told class by class what they leave
WITH_ZEROS = ("none", "binning")  # of which it is told how much the floor decides


def measure_split(learn: Predictions, held_out: Predictions) -> dict[str, Any]:
    """One net on one split, in numbers, lists and names only: as JSON keeps them."""
    fixed = {method.label: _fixed(method, learn, held_out) for method in EVERY if method.label in (*LEFT, *WITH_ZEROS)}
    verdicts = {
        "learning": test(learn, "mcllo", min_prob=MIN_PROB),
        "held out": test(held_out, "mcllo", min_prob=MIN_PROB),
    }
    return {
        "learning": dict(method_rows(learn, learn, METHODS[:1])[0]),  # the identity learns nothing
        "methods": [dict(row) for row in method_rows(learn, held_out, EVERY)],
        "statistics": {part: verdict.statistic for part, verdict in verdicts.items()},
        "parameters": {part: parameters(verdict) for part, verdict in verdicts.items()},
        "left": {name: _by_class(test(fixed[name], "mcllo", min_prob=MIN_PROB)) for name in LEFT},
        "floors": [{"method": name, **floors(fixed[name])} for name in WITH_ZEROS],
    }


def parameters(verdict: Verdict) -> list[dict[str, float | None]]:
    """δ and γ of each class against the last, with standard errors; δ's is δ times that of τ = log δ.

    At the maximum that is what inverting the Hessian in δ itself gives, as the paper does.
    """
    rows = []
    for part in _classes(verdict):
        row = {"delta": part["delta"], "delta_se": part["delta"] * part["tau_se"]}
        row |= {"gamma": part["gamma"], "gamma_se": part["gamma_se"]}
        rows.append({name: value if math.isfinite(value) else None for name, value in row.items()})
    return rows


def floors(preds: Predictions) -> dict[str, Any]:
    """How many zeros there are, and the test at a tenth of the floor, at the floor, and at ten times the floor."""
    assert preds.y is not None  # labels, no votes
    row: dict[str, Any] = {
        "zeros": int((preds.P == 0).sum()),
        "outcomes at 0": int((preds.P[np.arange(preds.n), preds.y] == 0).sum()),
        "smallest": float(preds.P[preds.P > 0].min()),
        "rows below": int((preds.P < MIN_PROB).any(axis=1).sum()),
    }
    for min_prob in (MIN_PROB / 10, MIN_PROB, MIN_PROB * 10):
        verdict = test(preds, "mcllo", min_prob=min_prob)
        row |= {f"statistic at {min_prob:g}": verdict.statistic, f"p at {min_prob:g}": verdict.pvalue}
    return row


def _fixed(method: Method, learn: Predictions, held_out: Predictions) -> Predictions:
    calibrator = fit(learn, method.name, **method.settings)
    assert held_out.y is not None  # labels, no votes
    return Predictions(held_out.y, calibrator.predict_proba(held_out))


def _by_class(verdict: Verdict) -> list[float | None]:
    """Holm's p of each class but the last."""
    return [part["holm"] if math.isfinite(part["holm"]) else None for part in _classes(verdict)]


def _classes(verdict: Verdict) -> list[dict[str, float]]:
    return [dict(part) for name, part in verdict.parts.items() if name.startswith("class:")]

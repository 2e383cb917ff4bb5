"""Canonical errors of a logistic regression estimated from resamples, as the number of classes grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.api.measure import measure
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.estimators.estimator_variants import MAX_QUADRATIC_ROWS, draw_labels
from trueodds_studies.estimators.trained_models import RandomMixture, predict_proba, train

DIMENSIONS = 2  # fewer than classes: the logits, linear in a row, determine it, so that the true posterior is r(p)
MIN_TRAIN_ROWS = 300
TRAIN_ROWS_PER_CLASS = 10
TV, L1 = 1.0, 2.0  # values per total variation: of an estimator of it, and of one of the L1 distance of vectors
CANONICAL_ESTIMATORS: Mapping[str, tuple[str, Mapping[str, Any], float, int]] = {
    "ece": ("ece", {"min_size": 10}, TV, 10**9),
    "cross_fitted": ("cross_fitted", {}, TV, 10**9),
    "dirichlet_kde": ("dirichlet_kde", {}, L1, MAX_QUADRATIC_ROWS),
}
"""Estimator, settings, values per total variation, and largest number of rows, by label."""
OWN_SCALE_ESTIMATORS: Mapping[str, tuple[str, Mapping[str, Any], float, int]] = {
    "skce": ("skce", {}, 1.0, MAX_QUADRATIC_ROWS),
}
"""The same for estimators with a scale of their own, of which only the power against calibration is reported."""


@dataclass(frozen=True)
class ClassesCell:
    """One random mixture with k classes, and a logistic regression trained on it."""

    k: int
    number: int

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.k} classes, distribution {self.number}"


def measure_classes_cell(cell: ClassesCell, plan: Any) -> Row:
    """The true error, and the values of each estimator on resamples.

    The resamples have the observed labels, and for a calibrated model labels that are drawn from the predictions.
    """
    mixture = RandomMixture(cell.k, DIMENSIONS, cell.number, plan.seed)
    rng = np.random.default_rng([*mixture.key, 6])
    X_train, y_train = mixture.rows(rng, max(MIN_TRAIN_ROWS, TRAIN_ROWS_PER_CLASS * cell.k))
    model = train("logistic", X_train, y_train)
    X, y = mixture.rows(rng, plan.many_pool)
    P = predict_proba(model, X, cell.k)
    truth = float(np.abs(mixture.posterior(X) - P).sum(axis=1).mean() / 2)
    labels_by_world = {"trained": y, "calibrated": draw_labels(P, rng)}
    values: dict[str, Any] = {}
    for n in plan.many_rows:
        drawn = rng.integers(0, len(y), (plan.many_resamples, n))
        for label, (name, settings, scale, max_rows) in {**CANONICAL_ESTIMATORS, **OWN_SCALE_ESTIMATORS}.items():
            if n <= max_rows:
                values[f"{label} | {n}"] = {
                    world: [_canonical_value(labels[rows], P[rows], name, settings) / scale for rows in drawn]
                    for world, labels in labels_by_world.items()
                }
    return {"k": cell.k, "number": cell.number, "truth": truth, "values": values}


def _canonical_value(y: Array, P: Array, name: str, settings: Mapping[str, Any]) -> float:
    return measure(Predictions(y, P), name, lens="canonical", interval=None, **settings).value


def classes_table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per number of classes, number of rows and estimator: means over distributions."""
    rows: list[dict[str, Any]] = []
    for k in sorted({cell["k"] for cell in cells}):
        class_cells = [cell for cell in cells if cell["k"] == k]
        truth = np.array([cell["truth"] for cell in class_cells])
        for label in class_cells[0]["values"]:
            name, n = label.split(" | ")
            real = np.array([cell["values"][label]["trained"] for cell in class_cells])  # (distributions, resamples)
            null = np.array([cell["values"][label]["calibrated"] for cell in class_cells])
            row: dict[str, Any] = {"classes": k, "n": int(n), "estimator": name, "truth": None}
            if name in CANONICAL_ESTIMATORS:
                errors = real - truth[:, None]
                row |= {
                    "truth": truth.mean(),
                    "bias": errors.mean(),
                    "RMSE": np.sqrt((errors**2).mean()),
                    "RMSE of 0": np.sqrt((truth**2).mean()),
                }
            limit = np.quantile(null, 0.95, axis=1, method="higher")
            row |= {"calibrated": null.mean(), "power": (real > limit[:, None]).mean()}
            rows.append({key: float(x) if isinstance(x, np.floating) else x for key, x in row.items()})
    return tuple(rows)


def summarize_classes(rows: Sequence[Row]) -> str:
    """In words, the mean canonical ECE and the true error by number of classes, at the largest n."""
    phrases = []
    for k in sorted({row["classes"] for row in rows}):
        last = [row for row in rows if row["classes"] == k and row["estimator"] == "ece"][-1]
        phrases.append(
            f"{k} classes {last['truth'] + last['bias']:.3f}, true error {last['truth']:.3f} (calibrated"
            f" {last['calibrated']:.3f})"
        )
    return f"Mean canonical ece with a tree and the largest number of rows: {'; '.join(phrases)}."

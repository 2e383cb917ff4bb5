"""What becomes of errors of whole vectors as classes grow in number? Where the posterior is the calibration function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.api.verbs import measure
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds_studies.resumable_runs import Row
from trueodds_studies.trajectories.estimator_variants import SQUARE
from trueodds_studies.trajectories.mixtures import Mixture
from trueodds_studies.trajectories.models import predict_proba, trained
from trueodds_studies.trajectories.pool import draw_labels

WIDE = 2  # dimensions, fewer than classes: a row's logits, linear in it, give the row back, and r is the true posterior
TRAIN = 10  # rows a class, at least 300 altogether
TV, L1 = 1.0, 2.0  # the mean total variation, and the mean L1 distance of vectors, which is twice as large
CANONICAL_ESTIMATORS: Mapping[str, tuple[str, Mapping[str, Any], float, int]] = {
    "ece": ("ece", {}, TV, 10**9),
    "cross_fitted": ("cross_fitted", {}, TV, 10**9),
    "dirichlet_kde": ("dirichlet_kde", {}, L1, SQUARE),
}
OWN_SCALE_ESTIMATORS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "skce": ("skce", {}),  # on a scale of its own: how often it tells the model from a calibrated one
}


@dataclass(frozen=True)
class Cell:
    """One distribution of so many classes, and a logistic regression trained on it."""

    k: int
    number: int

    @property
    def key(self) -> str:
        """Its name among the kept cells."""
        return f"{self.k} classes, distribution {self.number}"


def measure_cell(cell: Cell, plan: Any) -> Row:
    """The truth, and each member's numbers on resamples of the model and of the same made calibrated."""
    mixture = Mixture(cell.k, WIDE, cell.number, plan.seed)
    rng = np.random.default_rng([*mixture.key, 6])
    X, y = mixture.rows(rng, max(300, TRAIN * cell.k))
    model = trained("logistic", X, y)
    X, y = mixture.rows(rng, plan.many_pool)
    P = predict_proba(model, X, cell.k)
    truth = float(np.abs(mixture.posterior(X) - P).sum(axis=1).mean() / 2)
    worlds = {"trained": y, "calibrated": draw_labels(P, rng)}
    values: dict[str, Any] = {}
    for n in plan.many_rows:
        drawn = rng.integers(0, len(y), (plan.many_resamples, n))
        for label, (name, settings, scale, max_rows) in {
            **CANONICAL_ESTIMATORS,
            **{b: (*how, 1.0, SQUARE) for b, how in OWN_SCALE_ESTIMATORS.items()},
        }.items():
            if n <= max_rows:
                values[f"{label} | {n}"] = {
                    world: [_value(labels[rows], P[rows], name, settings) / scale for rows in drawn]
                    for world, labels in worlds.items()
                }
    return {"k": cell.k, "number": cell.number, "truth": truth, "values": values}


def _value(y: Array, P: Array, name: str, settings: Mapping[str, Any]) -> float:
    return measure(Predictions(y, P), name, lens="canonical", interval=None, **settings).value


def table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
    """One row per number of classes, rows and member: mean over distributions."""
    rows: list[dict[str, Any]] = []
    for k in sorted({cell["k"] for cell in cells}):
        class_cells = [cell for cell in cells if cell["k"] == k]
        truth = np.array([cell["truth"] for cell in class_cells])
        for label in class_cells[0]["values"]:
            name, n = label.split(" | ")
            real, null = (np.array([c["values"][label][w] for c in class_cells]) for w in ("trained", "calibrated"))
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


def sentence(rows: Sequence[Row]) -> str:
    """How far the tree's error is from the truth with few and with many classes."""
    phrases = []
    for k in sorted({row["classes"] for row in rows}):
        last = [row for row in rows if row["classes"] == k and row["estimator"] == "ece"][-1]
        phrases.append(
            f"{k} classes {last['truth'] + last['bias']:.3f} for {last['truth']:.3f} (calibrated {last['calibrated']:.3f})"
        )
    return f"The canonical ece on a tree says, with the most rows: {'; '.join(phrases)}."

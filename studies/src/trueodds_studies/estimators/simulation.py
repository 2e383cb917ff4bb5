"""Errors, rankings and power of every estimator on resamples of a holdout set, also as the number of classes grows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from trueodds.api.measure import measure
from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.uniform import Uniform
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.view import View
from trueodds.resampling.noise_floor import subtract_noise_floor
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.estimators.estimator_variants import (
    BIN_COUNTS,
    LENSES,
    MAX_QUADRATIC_ROWS,
    EstimatorVariant,
    ResamplePool,
    choose_variants,
    draw_labels,
    select_resamples,
)
from trueodds_studies.estimators.trained_models import (
    MODELS,
    RECALIBRATIONS,
    RandomMixture,
    TrueErrorBounds,
    predict_proba,
    recalibrate,
    train,
)

Values = dict[str, dict[int, Array]]  # by member and number of rows: one of each resample

WORLDS = ("as trained", *RECALIBRATIONS, "uneven classes")
PARTITIONS = {"uniform": Uniform, "equal-mass": EqualMass}
LEVEL = 0.05  # of the test of 0


@dataclass(frozen=True)
class Cell:
    """The four models of one train set, or what a recalibration makes of them: four trajectories on the same rows."""

    k: int
    d: int
    number: int
    split: int
    world: str = WORLDS[0]

    @property
    def key(self) -> str:
        """Its name among the kept cells."""
        return f"{self.k} classes, {self.d} dimensions, distribution {self.number}, split {self.split}, {self.world}"


@dataclass(frozen=True)
class Holdout:
    """The rows that no model has seen, and how they are drawn from; the same for all four."""

    X: Array
    y: Array
    fresh: tuple[Array, Array]  # the rows that a recalibration is fitted on
    train: tuple[Array, Array]
    key: tuple[int, ...]

    @classmethod
    def of(cls, cell: Cell, plan: Any) -> Holdout:
        """Rows of a stream of their own for every train set."""
        mixture = RandomMixture(cell.k, cell.d, cell.number, plan.seed, even=cell.world != "uneven classes")
        key = (*mixture.key, cell.split)
        rng = np.random.default_rng([*key, 2])
        train = _with_every_class(mixture, rng, plan.train)
        fresh = mixture.rows(rng, plan.train)
        return cls(*mixture.rows(rng, plan.pool), fresh, train, key)

    def drawn(self, n: int, resamples: int) -> Array:
        """Row numbers of the resamples of n rows, (resamples, n)."""
        return np.random.default_rng([*self.key, 3, n]).integers(0, len(self.y), (resamples, n), dtype=np.int32)


def _with_every_class(mixture: RandomMixture, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Training rows, drawn again while a class has fewer than the five rows that inner cross-validation requires."""
    while True:
        X, y = mixture.rows(rng, n)
        if np.bincount(y, minlength=mixture.k).min() >= min(5, n // mixture.k):
            return X, y


def measure_cell(cell: Cell, plan: Any) -> Mapping[str, Any]:
    """The four trajectories of a cell, and how often estimators put two of them in order."""
    holdout, variants = Holdout.of(cell, plan), choose_variants(plan.methods)
    ours: dict[str, tuple[dict[str, TrueErrorBounds], dict[str, Values]]] = {}
    models = []
    for number, name in enumerate(plan.models or MODELS):
        P = _model_predictions(name, cell, holdout)
        rng = np.random.default_rng([*holdout.key, 4, number])
        labels = [draw_labels(P, rng) for _ in range(plan.floors + 1)]
        lenses, truths, every = {}, {}, {}
        for lens in LENSES:
            lenses[lens], truths[lens], every[lens] = _score_lens(lens, P, labels, holdout, variants, plan)
        ours[name] = truths, every
        models.append(
            {"model": name, "right": _round_values(float((P.argmax(axis=1) == holdout.y).mean())), "lenses": lenses}
        )
    cell_columns = {"k": cell.k, "d": cell.d, "number": cell.number, "split": cell.split, "world": cell.world}
    return {
        **cell_columns,
        "models": models,
        "ranks": {lens: list(_ranking_rates(lens, ours, variants, plan)) for lens in LENSES},
    }


def _model_predictions(name: str, cell: Cell, holdout: Holdout) -> Array:
    model = train(name, *holdout.train)
    P = predict_proba(model, holdout.X, cell.k)
    if cell.world not in RECALIBRATIONS:
        return P
    X, y = holdout.fresh
    return recalibrate(cell.world, predict_proba(model, X, cell.k), y, P)


def _score_lens(
    lens: str, P: Array, labels: Sequence[Array], holdout: Holdout, variants: Sequence[EstimatorVariant], plan: Any
) -> tuple[dict[str, Any], TrueErrorBounds, Values]:
    """One model through one lens: the truth, and the errors of each estimator by number of rows."""
    pool = ResamplePool(P, holdout.y, lens)
    truth = TrueErrorBounds.of(pool.views)
    null = [pool.relabeled(y) for y in labels]
    values: Values = {variant.label: {} for variant in variants}
    stats: dict[str, Any] = {variant.label: [] for variant in variants if lens in variant.lenses}
    bins: dict[str, Any] = {name: [] for name in PARTITIONS}
    for number, n in enumerate(plan.sizes):
        rows = pool.rows(holdout.drawn(n, plan.resamples))
        real = _estimate_values(pool.views, rows, lens, n, variants, plan)
        tested = number % plan.every == 0
        calibrated = (
            _estimate_values(null[0], rows, lens, n, [m for m in variants if m.kind != "swapped"], plan)
            if tested
            else {}
        )
        for variant in variants:
            if variant.of and lens in variant.lenses:
                base = next(other for other in variants if other.label == variant.of)
                floors = np.mean([base.values(select_resamples(view, rows), lens) for view in null[1:]], axis=0)
                for estimates in (real, calibrated) if tested else (real,):
                    less = subtract_noise_floor(estimates[variant.of], floors)
                    estimates[variant.label] = np.where(
                        np.isnan(less), estimates[variant.of], less
                    )  # as a reader of `measure` would
        for label in stats:
            values[label][n] = real.get(label, np.empty(0))
            target = next(m.target for m in variants if m.label == label)
            stats[label].append(_error_stats(real.get(label), calibrated.get(label), truth.of_target(target), target))
        if tested and not plan.methods:
            some = select_resamples(pool.views, rows)
            for name, partition in PARTITIONS.items():
                bins[name].append(
                    [_rmse(some, BinnedError(partition(b)), truth.l1) if b <= n else None for b in BIN_COUNTS]
                )
    truth_values = {"l1": truth.l1, **asdict(truth)}
    return (
        {"truth": {name: _round_values(x) for name, x in truth_values.items()}, "members": stats, "bins": bins},
        truth,
        values,
    )


def _estimate_values(
    views: Sequence[View],
    rows: Sequence[tuple[Array, Array]],
    lens: str,
    n: int,
    variants: Sequence[EstimatorVariant],
    plan: Any,
) -> dict[str, Array]:
    full, reduced = select_resamples(views, rows), select_resamples(views, rows, plan.slow_resamples)
    return {
        variant.label: variant.values(reduced if variant.slow else full, lens)
        for variant in variants
        if not variant.of and n <= variant.max_rows and lens in variant.lenses
    }


def _error_stats(real: Array | None, calibrated: Array | None, truth: float, target: str) -> list[float | None]:
    """Bias, standard deviation, 95th percentile of the distance; calibrated: mean, standard deviation, power."""
    if real is None:
        return [None] * 6
    errors = real - truth
    first = (
        [None, float(real.std()), None]
        if target == "own"
        else [float(errors.mean()), float(real.std()), float(np.quantile(np.abs(errors), 0.95))]
    )
    if calibrated is None:
        return [*map(_round_values, first), None, None, None]
    limit = np.quantile(calibrated, 1 - LEVEL, method="higher")
    return [
        _round_values(x)
        for x in (*first, float(calibrated.mean()), float(calibrated.std()), float((real > limit).mean()))
    ]


def _rmse(some: Sequence[Any], error: BinnedError, truth: float) -> float | None:
    values = np.mean([error.evaluate_selections(one) for one in some], axis=0)
    return _round_values(float(np.sqrt(((values - truth) ** 2).mean())))


def _ranking_rates(
    lens: str,
    ours: Mapping[str, tuple[dict[str, TrueErrorBounds], dict[str, Values]]],
    variants: Sequence[EstimatorVariant],
    plan: Any,
) -> Iterator[dict[str, Any]]:
    """Each pair of models: how far apart, and how often the one that is farther off gets the larger number."""
    names = list(ours)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            gap = ours[one][0][lens].l1 - ours[other][0][lens].l1
            right = {}
            for label in (variant.label for variant in variants if lens in variant.lenses):
                a, b = ours[one][1][lens][label], ours[other][1][lens][label]
                right[label] = [_share_in_order(a[n] - b[n], gap) for n in plan.sizes]
            yield {"pair": [one, other], "gap": _round_values(gap), "right": right}


def _share_in_order(difference: Array, gap: float) -> float | None:
    """The share in order; what is tied is right half of the time."""
    if not len(difference):
        return None
    return _round_values(float((0.5 + 0.5 * np.sign(difference) * np.sign(gap)).mean()))


def _round_values(x: float | None) -> float | None:
    """Five decimals, a hundredth of what chance leaves uncertain."""
    return None if x is None or not np.isfinite(x) else round(x, 5)


DIMENSIONS = (
    2  # dimensions, fewer than classes: a row's logits, linear in it, give the row back, and r is the true posterior
)
TRAIN_ROWS_FACTOR = 10  # rows a class, at least 300 altogether
TV, L1 = 1.0, 2.0  # the mean total variation, and the mean L1 distance of vectors, which is twice as large
CANONICAL_ESTIMATORS: Mapping[str, tuple[str, Mapping[str, Any], float, int]] = {
    "ece": ("ece", {}, TV, 10**9),
    "cross_fitted": ("cross_fitted", {}, TV, 10**9),
    "dirichlet_kde": ("dirichlet_kde", {}, L1, MAX_QUADRATIC_ROWS),
}
OWN_SCALE_ESTIMATORS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "skce": ("skce", {}),  # on a scale of its own: how often it tells the model from a calibrated one
}


@dataclass(frozen=True)
class ClassesCell:
    """One distribution of so many classes, and a logistic regression trained on it."""

    k: int
    number: int

    @property
    def key(self) -> str:
        """Its name among the kept cells."""
        return f"{self.k} classes, distribution {self.number}"


def measure_classes_cell(cell: ClassesCell, plan: Any) -> Row:
    """The truth, and the values of each estimator on resamples, with observed labels and with labels drawn from P."""
    mixture = RandomMixture(cell.k, DIMENSIONS, cell.number, plan.seed)
    rng = np.random.default_rng([*mixture.key, 6])
    X, y = mixture.rows(rng, max(300, TRAIN_ROWS_FACTOR * cell.k))
    model = train("logistic", X, y)
    X, y = mixture.rows(rng, plan.many_pool)
    P = predict_proba(model, X, cell.k)
    truth = float(np.abs(mixture.posterior(X) - P).sum(axis=1).mean() / 2)
    worlds = {"trained": y, "calibrated": draw_labels(P, rng)}
    values: dict[str, Any] = {}
    for n in plan.many_rows:
        drawn = rng.integers(0, len(y), (plan.many_resamples, n))
        for label, (name, settings, scale, max_rows) in {
            **CANONICAL_ESTIMATORS,
            **{b: (*how, 1.0, MAX_QUADRATIC_ROWS) for b, how in OWN_SCALE_ESTIMATORS.items()},
        }.items():
            if n <= max_rows:
                values[f"{label} | {n}"] = {
                    world: [_canonical_value(labels[rows], P[rows], name, settings) / scale for rows in drawn]
                    for world, labels in worlds.items()
                }
    return {"k": cell.k, "number": cell.number, "truth": truth, "values": values}


def _canonical_value(y: Array, P: Array, name: str, settings: Mapping[str, Any]) -> float:
    return measure(Predictions(y, P), name, lens="canonical", interval=None, **settings).value


def classes_table(cells: Sequence[Row]) -> tuple[dict[str, Any], ...]:
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


def summarize_classes(rows: Sequence[Row]) -> str:
    """How far the tree's error is from the truth with few and with many classes."""
    phrases = []
    for k in sorted({row["classes"] for row in rows}):
        last = [row for row in rows if row["classes"] == k and row["estimator"] == "ece"][-1]
        phrases.append(
            f"{k} classes {last['truth'] + last['bias']:.3f} for {last['truth']:.3f} (calibrated"
            f" {last['calibrated']:.3f})"
        )
    return f"The canonical ece on a tree says, with the most rows: {'; '.join(phrases)}."

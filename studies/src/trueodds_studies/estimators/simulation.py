"""Errors, rankings and power of every estimator on resamples of a holdout set, for four models on the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.uniform import Uniform
from trueodds.core.typing import Array
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.view import View
from trueodds.resampling.null_distribution import subtract_noise_floor
from trueodds_studies.estimators.estimator_variants import (
    BIN_COUNTS,
    LENSES,
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

Estimates = dict[str, dict[int, Array]]  # by label of the estimator and number of rows: (resamples,)

WORLDS = ("as trained", *RECALIBRATIONS, "uneven classes")
"""The models as trained, after each recalibration, and trained with uneven class frequencies."""
PARTITIONS = {"uniform": Uniform, "equal-mass": EqualMass}
LEVEL = 0.05  # of the test of calibration whose power is reported


@dataclass(frozen=True)
class Cell:
    """One training set, on which four models are trained, and the world (one of WORLDS) in which they are evaluated.

    Each model gives one trajectory: the errors of every estimator by number of rows.
    """

    k: int  # classes
    d: int  # dimensions
    number: int  # of the distribution
    split: int  # number of the training set
    world: str = WORLDS[0]

    @property
    def key(self) -> str:
        """Key of the cell in the saved results."""
        return f"{self.k} classes, {self.d} dimensions, distribution {self.number}, split {self.split}, {self.world}"


@dataclass(frozen=True)
class Holdout:
    """Rows of a distribution: for training, for recalibration, and the holdout set from which resamples are drawn."""

    X: Array  # (pool, d) features of the holdout set
    y: Array  # (pool,) labels
    recalibration: tuple[Array, Array]  # features and labels for fitting a recalibration
    train: tuple[Array, Array]  # features and labels for training
    key: tuple[int, ...]  # seeds of the random streams

    @classmethod
    def simulate(cls, cell: Cell, plan: Any) -> Holdout:
        """Draw all rows of a cell, from a random stream of its own."""
        mixture = RandomMixture(cell.k, cell.d, cell.number, plan.seed, even=cell.world != "uneven classes")
        key = (*mixture.key, cell.split)
        rng = np.random.default_rng([*key, 2])
        train_rows = _draw_every_class(mixture, rng, plan.train)
        recalibration_rows = mixture.rows(rng, plan.train)
        X, y = mixture.rows(rng, plan.pool)
        return cls(X, y, recalibration_rows, train_rows, key)

    def draw_resamples(self, n: int, resamples: int) -> Array:
        """Row numbers of the resamples of n rows, (resamples, n)."""
        return np.random.default_rng([*self.key, 3, n]).integers(0, len(self.y), (resamples, n), dtype=np.int32)


def _draw_every_class(mixture: RandomMixture, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Draw training rows, again and again until every class has the five rows that inner cross-validation requires."""
    while True:
        X, y = mixture.rows(rng, n)
        if np.bincount(y, minlength=mixture.k).min() >= min(5, n // mixture.k):
            return X, y


def measure_cell(cell: Cell, plan: Any) -> Mapping[str, Any]:
    """The errors of every estimator for four models, and how often estimators order two of the models correctly."""
    holdout, variants = Holdout.simulate(cell, plan), choose_variants(plan.methods)
    truths: dict[str, dict[str, TrueErrorBounds]] = {}  # by model and lens
    estimates: dict[str, dict[str, Estimates]] = {}
    models = []
    for number, name in enumerate(plan.models or MODELS):
        P = _model_predictions(name, cell, holdout)
        rng = np.random.default_rng([*holdout.key, 4, number])
        labels = [draw_labels(P, rng) for _ in range(plan.floors + 1)]
        lenses: dict[str, Any] = {}
        truths[name], estimates[name] = {}, {}
        for lens in LENSES:
            lenses[lens], truths[name][lens], estimates[name][lens] = _score_lens(
                lens, P, labels, holdout, variants, plan
            )
        models.append(
            {"model": name, "right": _round_stat(float((P.argmax(axis=1) == holdout.y).mean())), "lenses": lenses}
        )
    cell_columns = {"k": cell.k, "d": cell.d, "number": cell.number, "split": cell.split, "world": cell.world}
    return {
        **cell_columns,
        "models": models,
        "ranks": {lens: list(_ranking_rates(lens, truths, estimates, variants, plan)) for lens in LENSES},
    }


def _model_predictions(name: str, cell: Cell, holdout: Holdout) -> Array:
    """Train a model, and predict the holdout set, (pool, K), after recalibration if the world is one."""
    model = train(name, *holdout.train)
    P = predict_proba(model, holdout.X, cell.k)
    if cell.world not in RECALIBRATIONS:
        return P
    X, y = holdout.recalibration
    return recalibrate(cell.world, predict_proba(model, X, cell.k), y, P)


def _score_lens(
    lens: str, P: Array, labels: Sequence[Array], holdout: Holdout, variants: Sequence[EstimatorVariant], plan: Any
) -> tuple[dict[str, Any], TrueErrorBounds, Estimates]:
    """Evaluate one model through one lens.

    P are its predictions for the holdout set, and `labels` are sets of labels drawn from P: the first replaces the
    observed ones for a calibrated model, the others give noise floors. Returns the results for JSON (true errors,
    errors of each estimator by number of rows, RMSE by number of bins), bounds on the true error, and all estimates.
    """
    pool = ResamplePool(P, holdout.y, lens)
    truth = TrueErrorBounds.estimate(pool.views)
    null_views = [pool.relabel(y) for y in labels]
    estimates: Estimates = {variant.label: {} for variant in variants}
    stats: dict[str, Any] = {variant.label: [] for variant in variants if lens in variant.lenses}
    bins: dict[str, Any] = {name: [] for name in PARTITIONS}
    for number, n in enumerate(plan.sizes):
        rows = pool.rows(holdout.draw_resamples(n, plan.resamples))
        real = _estimate_values(pool.views, rows, lens, n, variants, plan)
        tested = number % plan.every == 0
        calibrated: dict[str, Array] = {}
        if tested:
            no_swapped = [variant for variant in variants if variant.kind != "swapped"]
            calibrated = _estimate_values(null_views[0], rows, lens, n, no_swapped, plan)
        for variant in variants:
            if variant.of and lens in variant.lenses:
                base = next(other for other in variants if other.label == variant.of)
                floors = np.mean([base.values(select_resamples(views, rows), lens) for views in null_views[1:]], axis=0)
                for values in (real, calibrated) if tested else (real,):
                    debiased = subtract_noise_floor(values[variant.of], floors)
                    # As in the results of `measure`, the estimate stays as it is where no debiased value exists.
                    values[variant.label] = np.where(np.isnan(debiased), values[variant.of], debiased)
        for label in stats:
            estimates[label][n] = real.get(label, np.empty(0))
            target = next(variant.target for variant in variants if variant.label == label)
            stats[label].append(_error_stats(real.get(label), calibrated.get(label), truth.of_target(target), target))
        if tested and not plan.methods:
            selections = select_resamples(pool.views, rows)
            for name, partition in PARTITIONS.items():
                bins[name].append(
                    [_rmse(selections, BinnedError(partition(b)), truth.l1) if b <= n else None for b in BIN_COUNTS]
                )
    truth_values = {"l1": truth.l1, **asdict(truth)}
    return (
        {"truth": {name: _round_stat(x) for name, x in truth_values.items()}, "members": stats, "bins": bins},
        truth,
        estimates,
    )


def _estimate_values(
    views: Sequence[View],
    rows: Sequence[tuple[Array, Array]],
    lens: str,
    n: int,
    variants: Sequence[EstimatorVariant],
    plan: Any,
) -> dict[str, Array]:
    """The estimates of every variant on resamples of n rows, (resamples,) each; slow ones on few resamples."""
    full, reduced = select_resamples(views, rows), select_resamples(views, rows, plan.slow_resamples)
    return {
        variant.label: variant.values(reduced if variant.slow else full, lens)
        for variant in variants
        if not variant.of and n <= variant.max_rows and lens in variant.lenses
    }


def _error_stats(real: Array | None, calibrated: Array | None, truth: float, target: str) -> list[float | None]:
    """Bias, standard deviation and 95th percentile of |estimate − truth|; mean, standard deviation and power.

    The first three are of the estimates `real` (resamples,), without bias and percentile for a target of its own scale.
    Mean and standard deviation are of the estimates for a calibrated model, and power is the share of `real` above
    their 95 % quantile.
    """
    if real is None:
        return [None] * 6
    errors = real - truth
    stats: list[float | None] = [float(errors.mean()), float(real.std()), float(np.quantile(np.abs(errors), 0.95))]
    if target == "own":
        stats = [None, float(real.std()), None]
    if calibrated is None:
        stats += [None, None, None]
    else:
        limit = np.quantile(calibrated, 1 - LEVEL, method="higher")
        stats += [float(calibrated.mean()), float(calibrated.std()), float((real > limit).mean())]
    return [_round_stat(x) for x in stats]


def _rmse(selections: Sequence[Any], error: BinnedError, truth: float) -> float | None:
    """RMSE of a binned error over resamples, which are selections of rows of each view."""
    values = np.mean([error.evaluate_selections(selection) for selection in selections], axis=0)
    return _round_stat(float(np.sqrt(((values - truth) ** 2).mean())))


def _ranking_rates(
    lens: str,
    truths: Mapping[str, Mapping[str, TrueErrorBounds]],
    estimates: Mapping[str, Mapping[str, Estimates]],
    variants: Sequence[EstimatorVariant],
    plan: Any,
) -> Iterator[dict[str, Any]]:
    """For each pair of models: difference of the true errors, and shares of resamples with estimates in order."""
    for first, second in combinations(truths, 2):
        gap = truths[first][lens].l1 - truths[second][lens].l1
        right = {}
        for label in (variant.label for variant in variants if lens in variant.lenses):
            a, b = estimates[first][lens][label], estimates[second][lens][label]
            right[label] = [_share_in_order(a[n] - b[n], gap) for n in plan.sizes]
        yield {"pair": [first, second], "gap": _round_stat(gap), "right": right}


def _share_in_order(difference: Array, gap: float) -> float | None:
    """Share of differences of estimates with the sign of the true difference `gap`; ties count one half."""
    if not len(difference):
        return None
    return _round_stat(float((0.5 + 0.5 * np.sign(difference) * np.sign(gap)).mean()))


def _round_stat(x: float | None) -> float | None:
    """Round to five decimals, a hundredth of the Monte Carlo error; None if missing or not finite."""
    return None if x is None or not np.isfinite(x) else round(x, 5)

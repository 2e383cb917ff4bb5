"""What does every estimator say of the resamples of one holdout? Of four models trained on the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from trueodds.binning.partition import EqualMass, Uniform
from trueodds.core.typing import Array
from trueodds.estimators.binned import BinnedError
from trueodds.lenses.view import View
from trueodds.resampling.floors import subtract_noise_floor
from trueodds_studies.trajectories.estimator_variants import COUNTS, LENSES, EstimatorVariant, chosen
from trueodds_studies.trajectories.mixtures import Mixture
from trueodds_studies.trajectories.models import MODELS, RECALIBRATED, predict_proba, recalibrated, trained
from trueodds_studies.trajectories.pool import Pool, draw_labels, selections
from trueodds_studies.trajectories.truths import Truth

Values = dict[str, dict[int, Array]]  # by member and number of rows: one of each resample

WORLDS = ("as trained", *RECALIBRATED, "uneven classes")
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
        mixture = Mixture(cell.k, cell.d, cell.number, plan.seed, even=cell.world != "uneven classes")
        key = (*mixture.key, cell.split)
        rng = np.random.default_rng([*key, 2])
        train = _with_every_class(mixture, rng, plan.train)
        fresh = mixture.rows(rng, plan.train)
        return cls(*mixture.rows(rng, plan.pool), fresh, train, key)

    def drawn(self, n: int, resamples: int) -> Array:
        """Row numbers of the resamples of n rows, (resamples, n)."""
        return np.random.default_rng([*self.key, 3, n]).integers(0, len(self.y), (resamples, n), dtype=np.int32)


def _with_every_class(mixture: Mixture, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Training rows; drawn anew while a class has fewer than the five rows that inner cross-validation asks for."""
    while True:
        X, y = mixture.rows(rng, n)
        if np.bincount(y, minlength=mixture.k).min() >= min(5, n // mixture.k):
            return X, y


def measure_cell(cell: Cell, plan: Any) -> Mapping[str, Any]:
    """The four trajectories of a cell, and how often estimators put two of them in order."""
    holdout, variants = Holdout.of(cell, plan), chosen(plan.methods)
    ours: dict[str, tuple[dict[str, Truth], dict[str, Values]]] = {}
    models = []
    for number, name in enumerate(plan.models or MODELS):
        P = _predictions(name, cell, holdout)
        rng = np.random.default_rng([*holdout.key, 4, number])
        labels = [draw_labels(P, rng) for _ in range(plan.floors + 1)]
        lenses, truths, every = {}, {}, {}
        for lens in LENSES:
            lenses[lens], truths[lens], every[lens] = _through(lens, P, labels, holdout, variants, plan)
        ours[name] = truths, every
        models.append({"model": name, "right": _short(float((P.argmax(axis=1) == holdout.y).mean())), "lenses": lenses})
    where = {"k": cell.k, "d": cell.d, "number": cell.number, "split": cell.split, "world": cell.world}
    return {**where, "models": models, "ranks": {lens: list(_ranks(lens, ours, variants, plan)) for lens in LENSES}}


def _predictions(name: str, cell: Cell, holdout: Holdout) -> Array:
    model = trained(name, *holdout.train)
    P = predict_proba(model, holdout.X, cell.k)
    if cell.world not in RECALIBRATED:
        return P
    X, y = holdout.fresh
    return recalibrated(cell.world, predict_proba(model, X, cell.k), y, P)


def _through(
    lens: str, P: Array, labels: Sequence[Array], holdout: Holdout, variants: Sequence[EstimatorVariant], plan: Any
) -> tuple[dict[str, Any], Truth, Values]:
    """One model through one lens: the truth, and each member's errors by number of rows."""
    pool = Pool(P, holdout.y, lens)
    truth = Truth.of(pool.views)
    null = [pool.relabeled(y) for y in labels]
    values: Values = {variant.label: {} for variant in variants}
    stats: dict[str, Any] = {variant.label: [] for variant in variants if lens in variant.lenses}
    bins: dict[str, Any] = {name: [] for name in PARTITIONS}
    for number, n in enumerate(plan.sizes):
        rows = pool.rows(holdout.drawn(n, plan.resamples))
        real = _values(pool.views, rows, lens, n, variants, plan)
        tested = number % plan.every == 0
        calibrated = (
            _values(null[0], rows, lens, n, [m for m in variants if m.kind != "swapped"], plan) if tested else {}
        )
        for variant in variants:
            if variant.of and lens in variant.lenses:
                base = next(other for other in variants if other.label == variant.of)
                floors = np.mean([base.values(selections(view, rows), lens) for view in null[1:]], axis=0)
                for estimates in (real, calibrated) if tested else (real,):
                    less = subtract_noise_floor(estimates[variant.of], floors)
                    estimates[variant.label] = np.where(
                        np.isnan(less), estimates[variant.of], less
                    )  # as a reader of `measure` would
        for label in stats:
            values[label][n] = real.get(label, np.empty(0))
            target = next(m.target for m in variants if m.label == label)
            stats[label].append(_stats(real.get(label), calibrated.get(label), truth.of_target(target), target))
        if tested and not plan.methods:
            some = selections(pool.views, rows)
            for name, partition in PARTITIONS.items():
                bins[name].append(
                    [_rmse(some, BinnedError(partition(b)), truth.l1) if b <= n else None for b in COUNTS]
                )
    truth_values = {"l1": truth.l1, **asdict(truth)}
    return (
        {"truth": {name: _short(x) for name, x in truth_values.items()}, "members": stats, "bins": bins},
        truth,
        values,
    )


def _values(
    views: Sequence[View],
    rows: Sequence[tuple[Array, Array]],
    lens: str,
    n: int,
    variants: Sequence[EstimatorVariant],
    plan: Any,
) -> dict[str, Array]:
    full, reduced = selections(views, rows), selections(views, rows, plan.slow_resamples)
    return {
        variant.label: variant.values(reduced if variant.slow else full, lens)
        for variant in variants
        if not variant.of and n <= variant.max_rows and lens in variant.lenses
    }


def _stats(real: Array | None, calibrated: Array | None, truth: float, target: str) -> list[float | None]:
    """Bias, standard deviation, 95th percentile of the distance; calibrated: mean, standard deviation, power."""
    if real is None:
        return [None] * 6
    errors = real - truth
    first = [None, float(real.std()), None] if target == "own" else [
        float(errors.mean()), float(real.std()), float(np.quantile(np.abs(errors), 0.95))
    ]  # fmt: skip
    if calibrated is None:
        return [*map(_short, first), None, None, None]
    limit = np.quantile(calibrated, 1 - LEVEL, method="higher")
    return [
        _short(x) for x in (*first, float(calibrated.mean()), float(calibrated.std()), float((real > limit).mean()))
    ]


def _rmse(some: Sequence[Any], error: BinnedError, truth: float) -> float | None:
    values = np.mean([error.evaluate_selections(one) for one in some], axis=0)
    return _short(float(np.sqrt(((values - truth) ** 2).mean())))


def _ranks(
    lens: str,
    ours: Mapping[str, tuple[dict[str, Truth], dict[str, Values]]],
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
                right[label] = [_right(a[n] - b[n], gap) for n in plan.sizes]
            yield {"pair": [one, other], "gap": _short(gap), "right": right}


def _right(difference: Array, gap: float) -> float | None:
    """The share in order; what is tied is right half of the time."""
    if not len(difference):
        return None
    return _short(float((0.5 + 0.5 * np.sign(difference) * np.sign(gap)).mean()))


def _short(x: float | None) -> float | None:
    """Five decimals, a hundredth of what chance leaves uncertain."""
    return None if x is None or not np.isfinite(x) else round(x, 5)

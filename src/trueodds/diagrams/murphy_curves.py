"""Murphy curves: mean elementary score by threshold, its decomposition into MCB, DSC and UNC, and bootstrap bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from trueodds.binning.sorted_scores import group_starts, sort_by_rank, sort_by_score
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.diagrams.model_results import ModelResult
from trueodds.diagrams.table_columns import Columns, part_rows
from trueodds.estimators.corp import Corp
from trueodds.kernels.isotonic import isotonic_means
from trueodds.lenses.effective_sample_size import effective_n
from trueodds.lenses.view import View
from trueodds.resampling.comparison.paired_rows import same_rows
from trueodds.resampling.draws import Bootstrap, FixedCells

MAX_EXACT_THRESHOLDS = 1000  # maximum number of thresholds at which curves change for exact curves
# With more thresholds, curves are evaluated at these numbers of equally spaced thresholds, and of quantiles of the
# predictions of each model.
N_EVEN_THRESHOLDS, N_SCORE_QUANTILES = 200, 100
# A user acts if p exceeds the threshold. Share of the rows with p equal to the threshold that count as acting.
LIMIT_FROM_ABOVE, AT_THRESHOLD, LIMIT_FROM_BELOW = 0.0, 0.5, 1.0


def positions_among_thresholds(p: Array, thresholds: Array) -> Array:
    """Position of each score (n,) among the increasing thresholds (t,), an integer from 0 to 2t.

    It is 2j + 1 for a score equal to the threshold number j, and 2j for one below it and above the previous threshold.

    >>> positions_among_thresholds(np.array([0.1, 0.5, 0.6]), np.array([0.5, 0.9])).tolist()
    [0, 1, 2]
    """
    p_float64 = p.astype(np.float64, copy=False)
    return np.searchsorted(thresholds, p_float64, "left") + np.searchsorted(thresholds, p_float64, "right")


def elementary_scores(w: Array, wy: Array, thresholds: Array, acting_share: float = AT_THRESHOLD) -> Array:
    r"""The mean elementary score at each threshold, (…, t), from Σw and Σwy by position, (…, 2t + 1).

    .. math:: S_\theta = 2\theta\, P[p > \theta, y = 0] + 2(1 - \theta)\, P[p < \theta, y = 1]

    as in `murphy_loss`: a row with p = θ pays half of either cost. With `acting_share` = 1 that row acts, which is the
    limit from below θ, and with 0 it does not, the limit from above. Positions are those of
    `positions_among_thresholds`. Units: cost.
    """
    nonevents, events = np.cumsum(w - wy, axis=-1), np.cumsum(wy, axis=-1)
    thresholds_only = slice(1, None, 2)
    false_alarms = nonevents[..., -1:] - nonevents[..., thresholds_only] + acting_share * (w - wy)[..., thresholds_only]
    missed = events[..., 0:-1:2] + (1 - acting_share) * wy[..., thresholds_only]
    total_weight = nonevents[..., -1:] + events[..., -1:]
    cost: Array = 2 * (thresholds * false_alarms + (1 - thresholds) * missed) / total_weight
    return cost


class MurphyCurve:
    """Costs of one view by threshold, decomposed into MCB, DSC and UNC.

    Attributes
    ----------
    distinct_scores : ndarray (m,)
        The distinct predictions of the view, increasing; of logits whose probabilities are equal, several equal ones.
    w, wy : ndarray (m,)
        Share of the weight, and of the weight with the event, at each of them.
    isotonic_rates : ndarray (m,)
        The isotonic event rate at each of them.
    rate : float
        The event rate of all rows.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self.distinct_scores, w, wy = sort_by_rank(view).sums_by_score()
        self.w, self.wy = w / w.sum(), wy / w.sum()
        self.isotonic_rates = np.clip(isotonic_means(self.w, self.wy), 0.0, 1.0)
        self.rate = float(self.wy.sum())

    @property
    def threshold_breakpoints(self) -> Array:
        """Thresholds at which the curves change: the scores, the recalibrated rates and the overall rate."""
        return np.concatenate([self.distinct_scores, self.isotonic_rates, [self.rate]])

    def cost(self, thresholds: Array, acting_share: float = AT_THRESHOLD) -> Array:
        return _mean_scores(self.distinct_scores, self.w, self.wy, thresholds, acting_share)

    def recalibrated_cost(self, thresholds: Array) -> Array:
        """Return the mean cost after isotonic recalibration; at a rate of θ both decisions cost the same."""
        return _mean_scores(self.isotonic_rates, self.w, self.w * self.isotonic_rates, thresholds, AT_THRESHOLD)

    def constant_prediction_cost(self, thresholds: Array) -> Array:
        rate = np.array([self.rate])
        return _mean_scores(rate, np.ones(1), rate, thresholds, AT_THRESHOLD)

    def decompose(self, thresholds: Array, acting_share: float) -> dict[str, Array]:
        """The cost S (`score`) at each threshold, and its parts in S = MCB − DSC + UNC: `mcb`, `dsc` and `unc`."""
        score = self.cost(thresholds, acting_share)
        recalibrated = self.recalibrated_cost(thresholds)
        unc = self.constant_prediction_cost(thresholds)
        # Isotonic rates are optimal at every threshold, so negative parts are rounding errors.
        return {
            "score": score,
            "mcb": np.maximum(score - recalibrated, 0.0),
            "dsc": np.maximum(unc - recalibrated, 0.0),
            "unc": unc,
        }


def _mean_scores(s: Array, w: Array, wy: Array, thresholds: Array, acting_share: float) -> Array:
    """The mean elementary scores (thresholds,) of scores s (m,) with weights w and wy (m,)."""
    position, size = positions_among_thresholds(s, thresholds), 2 * len(thresholds) + 1
    return elementary_scores(np.bincount(position, w, size), np.bincount(position, wy, size), thresholds, acting_share)


def exact_thresholds(models: Sequence[MurphyCurve]) -> Array | None:
    """All thresholds at which some curve changes, with 0 and 1; None if there are too many to draw."""
    # This many distinct scores certainly give too many thresholds; collecting those of many rows would take long.
    if sum(len(model.distinct_scores) for model in models) > 2 * MAX_EXACT_THRESHOLDS * len(models):
        return None
    points = np.unique(np.concatenate([[0.0, 1.0], *(model.threshold_breakpoints for model in models)]))
    return points if len(points) <= MAX_EXACT_THRESHOLDS else None


def threshold_grid(models: Sequence[MurphyCurve], n_even_thresholds: int = N_EVEN_THRESHOLDS) -> Array:
    """Equally spaced thresholds and quantiles of the predictions, which for rare events are close to 0."""
    by_weight = [model.distinct_scores[group_starts(model.w, N_SCORE_QUANTILES)] for model in models]
    points = np.unique(np.concatenate([np.arange(n_even_thresholds + 1) / n_even_thresholds, *by_weight]))
    return points[(points >= 0) & (points <= 1)]


DIFFERENCE_COLUMNS = ("difference", "difference_low", "difference_high")
_TEXT_COLUMNS, _SCORE_COLUMNS = ("view", "model", "part", "side"), ("threshold", "score", "mcb", "dsc", "unc")
COLUMN_NAMES = (*_TEXT_COLUMNS, *_SCORE_COLUMNS, "low", "high", *DIFFERENCE_COLUMNS, "beyond", "share")
ACTING_SHARE_BY_SIDE = {"below": LIMIT_FROM_BELOW, "above": LIMIT_FROM_ABOVE}  # the limits at a jump
STRIP_BINS = 20  # equal bins of the strip of predictions


class CostDraws(NamedTuple):
    """The mean cost of a model by threshold, and that of each of its resamples."""

    cost: Array  # (thresholds,)
    draws: Array  # (resamples, thresholds)


class MurphyModel:
    """One model in one view: its curve, its score with decomposition, and their rows of the table.

    Attributes
    ----------
    cost_curve : MurphyCurve
        Its mean cost by threshold.
    score_name : {"brier", "log_loss"}
        The proper score that is decomposed.
    decomposition : dict of str to float
        The mean of that score, `score`, and its parts `mcb`, `dsc` and `unc`.
    """

    def __init__(self, name: str, view: View, score_name: str) -> None:
        self.name, self.view, self.score_name = name, view, score_name
        self.cost_curve = MurphyCurve(view)
        self.decomposition = Corp(score_name).parts(view)

    def table_rows(self, part: str, columns: Mapping[str, Any], view_name: str | None = None) -> Columns:
        """The rows of a part of the table; columns that do not apply are NaN or empty."""
        texts = {"view": view_name or self.view.name, "model": self.name, "part": part, "side": ""}
        return part_rows(COLUMN_NAMES, {**texts, **columns})

    def curve_rows(self, thresholds: Array, *, is_exact: bool) -> Columns:
        """The cost and its parts by threshold; exact curves have both limits at each threshold."""
        if not is_exact:
            decomposition = self.cost_curve.decompose(thresholds, AT_THRESHOLD)
            return self.table_rows("curve", decomposition | {"threshold": thresholds, "side": "at"})
        below, above = (
            self.cost_curve.decompose(thresholds, acting_share) for acting_share in ACTING_SHARE_BY_SIDE.values()
        )
        interleaved = {name: np.stack([below[name], above[name]], axis=1).ravel() for name in below}
        sides = list(ACTING_SHARE_BY_SIDE) * len(thresholds)
        return self.table_rows("curve", interleaved | {"threshold": np.repeat(thresholds, 2), "side": sides})

    def strip_rows(self) -> Columns:
        edges = np.arange(STRIP_BINS + 1) / STRIP_BINS
        bin_index = np.clip(np.searchsorted(edges, self.cost_curve.distinct_scores, "left") - 1, 0, STRIP_BINS - 1)
        share = np.bincount(bin_index, self.cost_curve.w, STRIP_BINS)
        occupied = share > 0
        columns = {"low": edges[:-1][occupied], "high": edges[1:][occupied], "share": share[occupied]}
        return self.table_rows("strip", columns)

    def score_row(
        self,
        result: ModelResult | None,
        mcb: ModelResult | None,
        decomposition: Mapping[str, float] | None = None,
        view_name: str | None = None,
    ) -> Columns:
        """The score and its parts, with the interval of MCB and the difference of the score to the first model's.

        By default they are those of the view, otherwise means over all views, under the name of their lens.
        """
        columns = dict(self.decomposition if decomposition is None else decomposition)
        if result is not None:
            columns |= {name: getattr(result, name) for name in DIFFERENCE_COLUMNS}
            columns["beyond"] = result.significant_sign
        if mcb is not None:
            columns |= {"low": mcb.error_low, "high": mcb.error_high}
        return self.table_rows("model", columns, view_name)

    def band_rows(self, thresholds: Array, draws: Array, first_model: CostDraws | None, level: float) -> Columns:
        """Intervals of the cost, from its draws (resamples, thresholds), and of its difference to the first model."""
        score = self.cost_curve.cost(thresholds)
        tails = (1 - level) / 2, (1 + level) / 2
        low, high = np.quantile(draws, tails, axis=0)
        columns = {"threshold": thresholds, "score": score, "low": low, "high": high}
        if first_model is not None:
            limits = np.quantile(draws - first_model.draws, tails, axis=0)
            columns |= dict(zip(DIFFERENCE_COLUMNS, (score - first_model.cost, *limits), strict=True))
            columns["beyond"] = (limits[0] > 0).astype(float) - (limits[1] < 0)
        return self.table_rows("band", columns)


def bootstrap_bands(
    models: Sequence[MurphyModel],
    data_by_model: Mapping[str, Any],
    thresholds: Array,
    *,
    level: float,
    resamples: int,
    rng: np.random.Generator,
    paired: bool | None,
) -> list[Columns]:
    """The table rows of the bands of all models of a view, one table for each model.

    `data_by_model` holds the Predictions or Tally of each model, or None if only its view is known.
    """
    draws_by_model = _bootstrap_costs_by_model(models, data_by_model, thresholds, resamples, rng, paired)
    first_model = models[0]
    first_draws = draws_by_model[first_model.name]
    tables: list[Columns] = []
    for model in models:
        draws = draws_by_model[model.name]
        n_draws = min(len(draws), len(first_draws))  # resamples without weight were skipped
        first_model_costs = None
        # Two tallies may contain the same rows, but their covariance is not stored.
        if model is not first_model and model.view.is_rows and first_model.view.is_rows:
            first_model_costs = CostDraws(first_model.cost_curve.cost(thresholds), first_draws[:n_draws])
        tables.append(model.band_rows(thresholds, draws[:n_draws], first_model_costs, level))
    return tables


def _bootstrap_costs_by_model(
    models: Sequence[MurphyModel],
    data_by_model: Mapping[str, Any],
    thresholds: Array,
    resamples: int,
    rng: np.random.Generator,
    paired: bool | None,
) -> dict[str, Array]:
    """Costs on bootstrap resamples by the name of the model, (resamples, thresholds) each.

    Models with the rows of the first model share its resamples, so that the draws of their difference are paired.
    """
    first_data = data_by_model[models[0].name]
    paired_models = [models[0]]
    for model in models[1:]:
        data = data_by_model[model.name]
        has_rows = isinstance(first_data, Predictions) and isinstance(data, Predictions)
        if has_rows and same_rows(first_data, data, paired)[0]:
            paired_models.append(model)
    draws_by_model: dict[str, Array] = {}
    if models[0].view.is_rows:
        cluster = getattr(first_data, "cluster", None)
        joint_draws = bootstrap_row_costs([model.view for model in paired_models], cluster, thresholds, resamples, rng)
        draws_by_model = {model.name: draws for model, draws in zip(paired_models, joint_draws, strict=True)}
    for model in models:
        if model.name in draws_by_model:
            continue
        if model.view.is_rows:
            cluster = getattr(data_by_model[model.name], "cluster", None)
            (draws_by_model[model.name],) = bootstrap_row_costs([model.view], cluster, thresholds, resamples, rng)
        else:
            draws_by_model[model.name] = bootstrap_tally_costs(model.view, thresholds, resamples, rng)
    return draws_by_model


def bootstrap_row_costs(
    views: Sequence[View], cluster: Array | None, thresholds: Array, resamples: int, rng: np.random.Generator
) -> list[Array]:
    """Return costs on bootstrap resamples of rows or clusters for each view, (resamples, thresholds)."""
    size = 2 * len(thresholds) + 1
    cells = [(view, FixedCells(positions_among_thresholds(view.p, thresholds), size)) for view in views]

    def resampled_costs(_v: int, w: Array, _wp: Array, wy: Array) -> Array:
        mask = w.sum(axis=1) > 0  # a resample whose rows all have weight 0 is skipped
        return elementary_scores(w[mask], wy[mask], thresholds)

    cost_blocks = Bootstrap(len(views[0]), cluster, resamples, rng).map_cells(cells, resampled_costs)
    return [np.concatenate(blocks) for blocks in cost_blocks]


def bootstrap_tally_costs(view: View, thresholds: Array, resamples: int, rng: np.random.Generator) -> Array:
    """Return costs on resamples of a tally, (resamples, thresholds): multinomial draws with the effective sample size.

    The draws are the events and nonevents between successive thresholds.
    """
    size = 2 * len(thresholds) + 1
    s, w, wy = sort_by_score(view).sums_by_score()
    bin_index = positions_among_thresholds(s, thresholds)
    events, nonevents = np.bincount(bin_index, wy, size), np.bincount(bin_index, w - wy, size)
    share = np.clip(np.concatenate([events, nonevents]), 0.0, None)
    counts = rng.multinomial(max(1, round(effective_n(view))), share / share.sum(), size=resamples).astype(np.float64)
    return elementary_scores(counts[:, :size] + counts[:, size:], counts[:, :size], thresholds)

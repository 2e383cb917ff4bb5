"""An error never shown bare: the value with its interval, its noise floor and its debiased form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.results import Estimate, Interval
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Mean, ProperScore
from trueodds.estimators.binned import BinnedError, BinSums
from trueodds.resampling import intervals
from trueodds.resampling.bootstrap import MAX_RESAMPLED_ROWS, bootstrap
from trueodds.resampling.cells import Resampled, from_cells, pooled_of
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.floors import subtract_noise_floor
from trueodds.resampling.folded import bias_of, folded_normal, gaps_of, has_gaps, influence_bound
from trueodds.resampling.interval_spec import IntervalSpec
from trueodds.resampling.jackknife import jackknife, squared_error_draws

UNDEFINED = "the value is infinite or undefined"
MIN_RESAMPLES = 100  # resamples below which the ends of an interval are not to be trusted
DRAWN = (
    "percentile",
    "basic",
    "bca",
    "residual-norm",
    "folded-normal",
    "noise-floor",
    "floor-bounds",
    "debiased",
)  # methods that look at resamples
RAW = ("percentile", "basic", "bca")  # of nothing but resamples: asked for by name, they may lie beside a biased value


def method_for(estimand: Estimand, interval_spec: IntervalSpec, *, clustered: bool, cells: bool) -> str | None:
    """The interval that `auto` stands for; None where none has a measured coverage."""
    method = _method(estimand, interval_spec, clustered=clustered, cells=cells)
    if cells and method in ("bca", "debiased"):
        raise InputError(
            "TO205", f"The {method} interval needs the rows.", "a tally", "Use interval='auto', or mode='exact'."
        )
    return method


def _method(estimand: Estimand, interval_spec: IntervalSpec, *, clustered: bool, cells: bool) -> str | None:
    if interval_spec.interval != "auto":
        _allowed(estimand, interval_spec.interval, clustered=clustered)
        return interval_spec.interval
    if isinstance(estimand.estimator, Mean):
        return "normal" if cells else "bca"
    if is_root_mean_square(estimand) and not clustered and _rows_per_bin(estimand) >= 10:
        return "sun"
    if estimand.estimator.interval == "residual-norm":
        return "folded-normal" if has_gaps(estimand) else "residual-norm" if _has_norm(estimand) else None
    if estimand.estimator.interval == "bca" and cells:
        return "percentile"  # what BCa comes to for a smooth statistic of so many rows
    return estimand.estimator.interval


def _has_norm(estimand: Estimand) -> bool:
    """Whether the resamples' own noise has a norm in which the error is measured."""
    if estimand.linear is None:
        return False
    return all(one.distance.norm for one in estimand.linear if isinstance(one, BinSums))


def _rows_per_bin(estimand: Estimand) -> float:
    """Rows by occupied bin: with few of them Sun's interval covers 88 % where it says 95 %."""
    assert estimand.linear is not None
    return estimand.views[0].n_rows / len(pooled_of(estimand.views[0], estimand.linear[0]).w)


def is_root_mean_square(estimand: Estimand) -> bool:
    """Whether it is a root mean square over the bins of one score, which has an unbiased square."""
    error = estimand.estimator
    if not (isinstance(error, BinnedError) and error.order == 2 and str(error.distance) == "tv"):
        return False
    return len(estimand.views) == 1 and not estimand.views[0].joint and estimand.linear is not None


def _allowed(estimand: Estimand, method: str | None, *, clustered: bool) -> None:
    if method in ("sun", "debiased") and clustered:
        raise InputError(
            "TO205",
            f"The {method} interval takes rows as independent, and these come in clusters.",
            f"interval={method!r}",
            "Use interval='auto': clusters are resampled whole.",
        )
    debiased = estimand.estimator.interval == "debiased" and method == "debiased"
    if method in ("sun", "debiased") and not is_root_mean_square(estimand) and not debiased:
        raise InputError(
            "TO205",
            f"The {method} interval is for the squared error of one score.",
            f"{estimand.estimator.name} through {estimand.lens}",
            "Use rmsce through a binary lens, or interval='auto'.",
        )


def estimates(
    preds: Predictions,
    estimands: Sequence[Estimand],
    interval_spec: IntervalSpec,
    rng: np.random.Generator,
    floors: Callable[[Sequence[Estimand]], Sequence[Array | None]],
) -> list[Estimate]:
    """Each question answered in full, all on one set of resamples; `floors` gives the null draws."""
    clustered, bare = preds.cluster is not None, interval_spec.interval is None
    reported = [estimand.reported for estimand in estimands]  # a debiased form shows the interval of its plug-in
    methods = [method_for(estimand, interval_spec, clustered=clustered, cells=False) for estimand in reported]
    drawn = [
        i
        for i, estimand in enumerate(reported)
        if _is_drawn(estimand, methods[i]) and not too_many_views(preds, estimand, interval_spec)
    ]
    draws = (
        bootstrap(preds, [reported[i] for i in drawn], interval_spec.resamples, rng, interval_spec.resample)
        if drawn
        else []
    )
    resampled = dict(zip(drawn, draws, strict=True))
    stand_ins = [i for i, estimand in enumerate(estimands) if reported[i] is not estimand]
    null: Sequence[Array | None] = [None] * (len(estimands) + len(stand_ins))
    if not bare:
        null = floors([*estimands, *(reported[i] for i in stand_ins)])
    reported_nulls = dict(enumerate(null[: len(estimands)])) | dict(zip(stand_ins, null[len(estimands) :], strict=True))
    out = []
    for i, estimand in enumerate(estimands):
        null_i = reported_nulls[i]
        interval, why = interval_of(preds, reported[i], methods[i], interval_spec, resampled.get(i), null_i, rng)
        how, notes = resampled[i].how if i in resampled else None, notes_of(preds, estimand)
        out.append(answer(estimand, interval, why, null[i], interval_spec, how, notes=notes, clustered=clustered))
    return out


def _is_drawn(estimand: Estimand, method: str | None) -> bool:
    """Whether the method looks at resamples; those of the squared error are made from its own sums."""
    return method in DRAWN and not (method == "debiased" and is_root_mean_square(estimand))


def too_many_views(preds: Predictions, estimand: Estimand, interval_spec: IntervalSpec) -> bool:
    """Whether several views would be resampled by cells, which do not keep how they vary together."""
    by_cells = interval_spec.resample == "auto" and preds.n > MAX_RESAMPLED_ROWS and preds.cluster is None
    return by_cells and len(estimand.views) > 1 and not isinstance(estimand.estimator, Mean)


def answer(
    estimand: Estimand,
    interval: Interval | None,
    why: str,
    null: Array | None,
    interval_spec: IntervalSpec,
    how: str | None,
    *,
    notes: list[Note],
    clustered: bool = False,
) -> Estimate:
    """The estimate of one question from its value, interval (or why there is none) and null draws."""
    estimator, bare = estimand.estimator, interval_spec.interval is None
    value = float(estimand.combined(estimand.values))
    if interval is not None and np.isnan(value):  # of a debiased error, whose interval is that of its plug-in
        interval, why = None, UNDEFINED
    settings = estimator.settings_used(estimand.views[0])
    parts = {} if bare and len(estimand.views) == 1 else parts_of(estimand)
    if len(estimand.views) > 1:
        settings = {
            key: setting for key, setting in settings.items() if not key.endswith("_bins") and not key.endswith("_bin")
        }
        settings["aggregate"] = estimand.aggregate
    noise_floor = None if bare else _noise_floor(estimand, null)
    if interval:
        settings |= {"interval": interval.method, "level": interval_spec.level}
        if estimand.aggregate != "sum":
            interval = intervals.below(interval, estimator.max_value, estimand.views[0].effective_n)
        if interval_spec.interval not in RAW:
            interval = intervals.including(interval, value)
    elif why and not bare:
        notes = [*notes, Note("TN201", f"No interval: {why}.")]
    if how:
        settings |= {"resamples": interval_spec.resamples, "resample": how}
        if interval_spec.resamples < MIN_RESAMPLES:
            notes = [
                *notes,
                Note("TN211", f"{interval_spec.resamples} resamples do not tell the ends of an interval; give more."),
            ]
    if null is not None:
        settings["redraws"] = null.shape[-1]
    return Estimate(
        estimator.name, str(estimand.lens), value, estimand.n_rows, interval, noise_floor, _debiased(estimand, value, noise_floor, clustered=clustered),
        parts, settings, tuple(notes),
    )  # fmt: skip


def parts_of(estimand: Estimand) -> dict[str, float]:
    """The parts of one view; of several the value of each, and a score's terms put together like the score."""
    if len(estimand.views) == 1:
        return estimand.estimator.parts(estimand.views[0])
    parts = {view.name: float(value) for view, value in zip(estimand.views, estimand.values, strict=True)}
    if (
        isinstance(estimand.estimator, ProperScore) and estimand.aggregate != "max"
    ):  # the largest terms are of several views
        view_terms = [estimand.estimator.parts(view) for view in estimand.views]
        parts |= {term: float(estimand.combined(np.array([one[term] for one in view_terms]))) for term in view_terms[0]}
    return parts


def _noise_floor(estimand: Estimand, null: Array | None) -> float | None:
    """The mean statistic of a calibrated model: the mean of the draws, or what is known without them."""
    if null is not None:
        return float(estimand.combined(null).mean())
    known = [estimand.estimator.expected(view) for view in estimand.views]
    return None if any(expectation is None for expectation in known) else float(estimand.combined(np.array(known)))


def _debiased(estimand: Estimand, value: float, noise_floor: float | None, *, clustered: bool) -> float | None:
    """T_mn's signed root for L2; √max(0, e² − floor²) where the error is within twice its floor.

    The square of a norm has its root taken first, so that its floor is subtracted; what is debiased stays as it is.
    """
    if is_root_mean_square(estimand) and not clustered:  # pairs of rows of one cluster are no independent pairs
        assert estimand.linear is not None
        view, one = estimand.views[0], estimand.linear[0]
        t, _ = intervals.squared_error(pooled_of(view, one))
        return float(np.sign(t) * np.sqrt(abs(t)))
    # A mean, which a calibrated model need not bring to 0, or debiased by itself.
    settled = estimand.estimator.interval in ("bca", "debiased")
    if settled or noise_floor is None or not 0 <= value:
        return None
    less = float(subtract_noise_floor(value, noise_floor, estimand.estimator.power))
    return None if np.isnan(less) else less


def interval_of(
    preds: Predictions | None,
    estimand: Estimand,
    method: str | None,
    interval_spec: IntervalSpec,
    resampled: Resampled | None,
    null: Array | None,
    rng: np.random.Generator,
) -> tuple[Interval | None, str]:
    """The interval of one question by the chosen method, or why there is none."""
    value = float(estimand.combined(estimand.values))
    if not np.isfinite(value):
        return None, UNDEFINED
    if method is None:
        return None, "none of measured coverage exists for this error; interval='percentile' gives the raw bootstrap"
    if preds is not None and units_of(preds) < 2:
        return None, "one row or cluster tells nothing of how rows vary"
    if _is_drawn(estimand, method) and resampled is None:
        return None, "beyond 200,000 rows the joint law of the classes is not resampled; resample='rows' does it"
    interval = _made(preds, estimand, method, interval_spec, resampled, null, rng, value)
    if interval.low < interval.high:
        return interval, ""
    if np.isnan(interval.low + interval.high):
        return None, "some resamples have no row of a class or a group, and so no number"
    return None, "the outcomes do not vary, so resamples cannot tell how sure the value is"


def units_of(preds: Predictions) -> int:
    """How many rows or clusters are independent of each other."""
    return preds.n if preds.cluster is None else int(preds.cluster.max()) + 1


def _made(
    preds: Predictions | None,
    estimand: Estimand,
    method: str,
    interval_spec: IntervalSpec,
    resampled: Resampled | None,
    null: Array | None,
    rng: np.random.Generator,
    value: float,
) -> Interval:
    if method == "sun" or (method == "debiased" and is_root_mean_square(estimand)):
        assert estimand.linear is not None
        view, one = estimand.views[0], estimand.linear[0]
        binned = pooled_of(view, one)
        if method == "sun":
            return intervals.sun(binned, interval_spec.level)
        assert preds is not None
        t, _ = intervals.squared_error(binned)
        draws = squared_error_draws(preds, view, one.index, one.size, interval_spec.resamples, rng)
        return intervals.root(intervals.debiased(t, float(estimand.values[0]) ** 2, draws, interval_spec.level))
    assert resampled is not None
    draws = estimand.combined(resampled.values)
    if method == "percentile":
        return intervals.percentile(draws, interval_spec.level)
    if method == "basic":
        return intervals.basic(value, draws, interval_spec.level)
    if method == "bca":
        assert preds is not None
        return intervals.bca(value, draws, estimand.combined(jackknife(preds, estimand)), interval_spec.level)
    if method == "debiased":
        plug_in = estimand.combined(np.array([estimand.estimator.plug_in(view) for view in estimand.views]))
        return intervals.of_pairs(value, float(plug_in), draws, interval_spec.level)
    assert null is not None
    n = estimand.views[0].effective_n if preds is None or preds.cluster is None else units_of(preds)
    if method == "noise-floor":
        return intervals.noise_floor(
            value, draws, estimand.combined(null), interval_spec.level, n, estimand.estimator.power
        )
    if method == "floor-bounds":
        null_means = null.mean(axis=-1)
        parts = [
            estimand.estimator.noise_share(view, float(one)) * one
            for view, one in zip(estimand.views, null_means, strict=True)
        ]
        noise_floor = estimand.combined(np.array(parts))
        return intervals.noise_floor_bounds(
            value, draws, float(noise_floor), estimand.combined(null), interval_spec.level, n
        )
    if method == "folded-normal":
        drawn = estimand.combined(null)
        bias = bias_of(gaps_of(estimand, preds), float(drawn.mean()), float(draws.mean()) - value)
        return folded_normal(
            value, float(draws.std(ddof=1)), bias, drawn, interval_spec.level, n, influence_bound(estimand)
        )
    assert resampled.centered_norms is not None
    centered_norms, floors = estimand.combined(resampled.centered_norms), estimand.combined(null)
    smooth = (
        estimand.estimator.smooth
        and estimand.aggregate != "max"
        and not np.isinf(getattr(estimand.estimator, "order", 1.0))
    )
    return intervals.residual_norm(value, draws, centered_norms, floors, interval_spec.level, n, smooth=smooth)


def notes_of(preds: Predictions, estimand: Estimand) -> list[Note]:
    """What the data, the lens and the estimator have to say."""
    views, estimator = estimand.views, estimand.estimator
    own = estimator.notes(views[0]) if len(views) == 1 else estimator.joint_notes(views)
    return [*preds.notes, *estimand.lens.notes(preds), *own]


def cells_lack(estimand: Estimand) -> str:
    """Why the cells of a tally do not tell how sure a value is; empty where they do."""
    if len(estimand.views) > 1:
        return "a tally does not keep the joint law of several views under resampling"
    if estimand.views[0].joint:
        return "a tally does not keep how the residuals of a vector vary together"
    if isinstance(estimand.estimator, Mean):
        return "a tally keeps the spread of the whole score only, not of this lens"
    return ""


def estimate_from_cells(
    estimand: Estimand,
    interval_spec: IntervalSpec,
    rng: np.random.Generator,
    null: Array | None,
    notes: list[Note],
    reported_null: Array | None = None,
) -> Estimate:
    """One question answered from the cells of a tally; aggregates over classes get no interval there.

    `reported_null` are the null draws of the estimator whose interval is shown, where that is another one.
    """
    if interval_spec.resample == "rows":
        raise InputError(
            "TO205", "Resampling rows needs the rows.", "a tally", "Leave resample out, or use mode='exact'."
        )
    reported = estimand.reported
    method = method_for(reported, interval_spec, clustered=False, cells=True)
    resampled = None
    if interval_spec.interval is None:
        interval, why = None, ""
    elif len(estimand.views) > 1:
        notes = [
            *notes,
            Note(
                "TN402",
                "From a tally an aggregate over classes has no interval: the classes' joint law under resampling is not kept.",
            ),
        ]
        interval, why = None, ""
    elif why := cells_lack(estimand):
        interval = None
    else:
        resampled = from_cells(reported, interval_spec.resamples, rng) if method in DRAWN else None
        interval, why = interval_of(
            None, reported, method, interval_spec, resampled, null if reported is estimand else reported_null, rng
        )
    return answer(estimand, interval, why, null, interval_spec, resampled.how if resampled else None, notes=notes)

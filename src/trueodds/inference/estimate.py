"""An error never shown bare: the value with its interval, its noise floor and its debiased form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import InputError, Note
from trueodds.core.results import Estimate, Interval
from trueodds.core.settings import OneOf, Probability, Range, Settings
from trueodds.estimators.base import Mean, ProperScore
from trueodds.estimators.binned import BinnedError, BinSums
from trueodds.inference import intervals
from trueodds.inference.asked import Asked
from trueodds.inference.bootstrap import ROWS_AT_MOST, bootstrap
from trueodds.inference.cells import Resampled, from_cells, pooled_of
from trueodds.inference.floors import less_floor
from trueodds.inference.folded import bias_of, folded_normal, gaps_of, has_gaps, reach_of
from trueodds.inference.jackknife import jackknife, squared_error_draws
from trueodds.problem.predictions import Predictions

Array = NDArray[Any]

UNDEFINED = "the value is infinite or undefined"
FEW = 100  # resamples below which the ends of an interval are not to be trusted
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
UNITS = ("auto", "rows", "cells")  # what is resampled
METHODS = ("auto", "percentile", "basic", "bca", "sun", "debiased")


@dataclass(frozen=True)
class Sureness(Settings):
    """How the interval is made."""

    interval: Annotated[str, OneOf(METHODS)] | None = "auto"
    level: Probability = 0.95
    resamples: Annotated[int, Range(2, 100_000_000)] = 2000
    resample: Annotated[str, OneOf(UNITS)] = "auto"


def method_for(asked: Asked, sure: Sureness, *, clustered: bool, cells: bool) -> str | None:
    """The interval that `auto` stands for; None where none has a measured coverage."""
    method = _method(asked, sure, clustered=clustered, cells=cells)
    if cells and method in ("bca", "debiased"):
        raise InputError(
            "TO205", f"The {method} interval needs the rows.", "a tally", "Use interval='auto', or mode='exact'."
        )
    return method


def _method(asked: Asked, sure: Sureness, *, clustered: bool, cells: bool) -> str | None:
    if sure.interval != "auto":
        _allowed(asked, sure.interval, clustered=clustered)
        return sure.interval
    if isinstance(asked.estimator, Mean):
        return "normal" if cells else "bca"
    if is_root_mean_square(asked) and not clustered and _rows_per_bin(asked) >= 10:
        return "sun"
    if asked.estimator.interval == "residual-norm":
        return "folded-normal" if has_gaps(asked) else "residual-norm" if _has_norm(asked) else None
    if asked.estimator.interval == "bca" and cells:
        return "percentile"  # what BCa comes to for a smooth statistic of so many rows
    return asked.estimator.interval


def _has_norm(asked: Asked) -> bool:
    """Whether the resamples' own noise has a norm in which the error is measured."""
    if asked.linear is None:
        return False
    return all(one.distance.norm for one in asked.linear if isinstance(one, BinSums))


def _rows_per_bin(asked: Asked) -> float:
    """Rows by occupied bin: with few of them Sun's interval covers 88 % where it says 95 %."""
    assert asked.linear is not None
    return asked.views[0].n_rows / len(pooled_of(asked.views[0], asked.linear[0]).w)


def is_root_mean_square(asked: Asked) -> bool:
    """Whether it is a root mean square over the bins of one score, which has an unbiased square."""
    error = asked.estimator
    if not (isinstance(error, BinnedError) and error.order == 2 and str(error.distance) == "tv"):
        return False
    return len(asked.views) == 1 and not asked.views[0].joint and asked.linear is not None


def _allowed(asked: Asked, method: str | None, *, clustered: bool) -> None:
    if method in ("sun", "debiased") and clustered:
        raise InputError(
            "TO205",
            f"The {method} interval takes rows as independent, and these come in clusters.",
            f"interval={method!r}",
            "Use interval='auto': clusters are resampled whole.",
        )
    debiased = asked.estimator.interval == "debiased" and method == "debiased"
    if method in ("sun", "debiased") and not is_root_mean_square(asked) and not debiased:
        raise InputError(
            "TO205",
            f"The {method} interval is for the squared error of one score.",
            f"{asked.estimator.name} through {asked.lens}",
            "Use rmsce through a binary lens, or interval='auto'.",
        )


def estimates(
    preds: Predictions,
    asked: Sequence[Asked],
    sure: Sureness,
    rng: np.random.Generator,
    floors: Callable[[Sequence[Asked]], Sequence[Array | None]],
) -> list[Estimate]:
    """Each question answered in full, all on one set of resamples; `floors` gives the null draws."""
    clustered, bare = preds.cluster is not None, sure.interval is None
    judges = [each.judge for each in asked]  # a debiased form shows the interval of its plug-in
    methods = [method_for(each, sure, clustered=clustered, cells=False) for each in judges]
    drawn = [
        i for i, each in enumerate(judges) if _is_drawn(each, methods[i]) and not too_many_views(preds, each, sure)
    ]
    found = bootstrap(preds, [judges[i] for i in drawn], sure.resamples, rng, sure.resample) if drawn else []
    resampled = dict(zip(drawn, found, strict=True))
    standing = [i for i, each in enumerate(asked) if judges[i] is not each]
    null: Sequence[Array | None] = [None] * (len(asked) + len(standing))
    if not bare:
        null = floors([*asked, *(judges[i] for i in standing)])
    theirs = dict(enumerate(null[: len(asked)])) | dict(zip(standing, null[len(asked) :], strict=True))
    out = []
    for i, each in enumerate(asked):
        interval, why = interval_of(preds, judges[i], methods[i], sure, resampled.get(i), theirs[i], rng)
        how = resampled[i].how if i in resampled else None
        out.append(answer(each, interval, why, null[i], sure, how, notes=notes_of(preds, each), clustered=clustered))
    return out


def _is_drawn(asked: Asked, method: str | None) -> bool:
    """Whether the method looks at resamples; those of the squared error are made from its own sums."""
    return method in DRAWN and not (method == "debiased" and is_root_mean_square(asked))


def too_many_views(preds: Predictions, asked: Asked, sure: Sureness) -> bool:
    """Whether several views would be resampled by cells, which do not keep how they vary together."""
    by_cells = sure.resample == "auto" and preds.n > ROWS_AT_MOST and preds.cluster is None
    return by_cells and len(asked.views) > 1 and not isinstance(asked.estimator, Mean)


def answer(
    asked: Asked,
    interval: Interval | None,
    why: str,
    null: Array | None,
    sure: Sureness,
    how: str | None,
    *,
    notes: list[Note],
    clustered: bool = False,
) -> Estimate:
    """The estimate of one question from its value, interval (or why there is none) and null draws."""
    estimator, bare = asked.estimator, sure.interval is None
    value = float(asked.combined(asked.values))
    if interval is not None and np.isnan(value):  # of a debiased error, whose interval is that of its plug-in
        interval, why = None, UNDEFINED
    settings = estimator.said(asked.views[0])
    parts = {} if bare and len(asked.views) == 1 else parts_of(asked)
    if len(asked.views) > 1:
        settings = {
            key: kept for key, kept in settings.items() if not key.endswith("_bins") and not key.endswith("_bin")
        }
        settings["aggregate"] = asked.aggregate
    floor = None if bare else _floor(asked, null)
    if interval:
        settings |= {"interval": interval.method, "level": sure.level}
        if asked.aggregate != "sum":
            interval = intervals.below(interval, estimator.most, asked.views[0].worth)
        if sure.interval not in RAW:
            interval = intervals.including(interval, value)
    elif why and not bare:
        notes = [*notes, Note("TN201", f"No interval: {why}.")]
    if how:
        settings |= {"resamples": sure.resamples, "resample": how}
        if sure.resamples < FEW:
            notes = [
                *notes,
                Note("TN211", f"{sure.resamples} resamples do not tell the ends of an interval; give more."),
            ]
    if null is not None:
        settings["redraws"] = null.shape[-1]
    return Estimate(
        estimator.name, str(asked.lens), value, asked.n_rows, interval, floor, _debiased(asked, value, floor, clustered=clustered),
        parts, settings, tuple(notes),
    )  # fmt: skip


def parts_of(asked: Asked) -> dict[str, float]:
    """The parts of one view; of several the value of each, and a score's terms put together like the score."""
    if len(asked.views) == 1:
        return asked.estimator.parts(asked.views[0])
    parts = {view.name: float(each) for view, each in zip(asked.views, asked.values, strict=True)}
    if isinstance(asked.estimator, ProperScore) and asked.aggregate != "max":  # the largest terms are of several views
        each = [asked.estimator.parts(view) for view in asked.views]
        parts |= {term: float(asked.combined(np.array([one[term] for one in each]))) for term in each[0]}
    return parts


def _floor(asked: Asked, null: Array | None) -> float | None:
    """The mean statistic of a calibrated model: the mean of the draws, or what is known without them."""
    if null is not None:
        return float(asked.combined(null).mean())
    known = [asked.estimator.expected(view) for view in asked.views]
    return None if any(each is None for each in known) else float(asked.combined(np.array(known)))


def _debiased(asked: Asked, value: float, floor: float | None, *, clustered: bool) -> float | None:
    """T_mn's signed root for L2; √max(0, e² − floor²) where the error is within twice its floor.

    The square of a norm has its root taken first, so that its floor is subtracted; what is debiased stays as it is.
    """
    if is_root_mean_square(asked) and not clustered:  # pairs of rows of one cluster are no independent pairs
        assert asked.linear is not None
        view, one = asked.views[0], asked.linear[0]
        t, _ = intervals.squared_error(pooled_of(view, one))
        return float(np.sign(t) * np.sqrt(abs(t)))
    # A mean, which a calibrated model need not bring to 0, or debiased by itself.
    settled = asked.estimator.interval in ("bca", "debiased")
    if settled or floor is None or not 0 <= value:
        return None
    less = float(less_floor(value, floor, asked.estimator.power))
    return None if np.isnan(less) else less


def interval_of(
    preds: Predictions | None,
    asked: Asked,
    method: str | None,
    sure: Sureness,
    resampled: Resampled | None,
    null: Array | None,
    rng: np.random.Generator,
) -> tuple[Interval | None, str]:
    """The interval of one question by the chosen method, or why there is none."""
    value = float(asked.combined(asked.values))
    if not np.isfinite(value):
        return None, UNDEFINED
    if method is None:
        return None, "none of measured coverage exists for this error; interval='percentile' gives the raw bootstrap"
    if preds is not None and units_of(preds) < 2:
        return None, "one row or cluster tells nothing of how rows vary"
    if _is_drawn(asked, method) and resampled is None:
        return None, "beyond 200,000 rows the joint law of the classes is not resampled; resample='rows' does it"
    interval = _made(preds, asked, method, sure, resampled, null, rng, value)
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
    asked: Asked,
    method: str,
    sure: Sureness,
    resampled: Resampled | None,
    null: Array | None,
    rng: np.random.Generator,
    value: float,
) -> Interval:
    if method == "sun" or (method == "debiased" and is_root_mean_square(asked)):
        assert asked.linear is not None
        view, one = asked.views[0], asked.linear[0]
        pooled = pooled_of(view, one)
        if method == "sun":
            return intervals.sun(pooled, sure.level)
        assert preds is not None
        t, _ = intervals.squared_error(pooled)
        draws = squared_error_draws(preds, view, one.index, one.size, sure.resamples, rng)
        return intervals.root(intervals.debiased(t, float(asked.values[0]) ** 2, draws, sure.level))
    assert resampled is not None
    draws = asked.combined(resampled.values)
    if method == "percentile":
        return intervals.percentile(draws, sure.level)
    if method == "basic":
        return intervals.basic(value, draws, sure.level)
    if method == "bca":
        assert preds is not None
        return intervals.bca(value, draws, asked.combined(jackknife(preds, asked)), sure.level)
    if method == "debiased":
        plug_in = asked.combined(np.array([asked.estimator.plug_in(view) for view in asked.views]))
        return intervals.of_pairs(value, float(plug_in), draws, sure.level)
    assert null is not None
    n = asked.views[0].worth if preds is None or preds.cluster is None else units_of(preds)
    if method == "noise-floor":
        return intervals.noise_floor(value, draws, asked.combined(null), sure.level, n, asked.estimator.power)
    if method == "floor-bounds":
        each = null.mean(axis=-1)
        parts = [
            asked.estimator.noise_share(view, float(one)) * one for view, one in zip(asked.views, each, strict=True)
        ]
        floor = asked.combined(np.array(parts))
        return intervals.floor_bounds(value, draws, float(floor), asked.combined(null), sure.level, n)
    if method == "folded-normal":
        drawn = asked.combined(null)
        bias = bias_of(gaps_of(asked, preds), float(drawn.mean()), float(draws.mean()) - value)
        return folded_normal(value, float(draws.std(ddof=1)), bias, drawn, sure.level, n, reach_of(asked))
    assert resampled.spread is not None
    spread, floors = asked.combined(resampled.spread), asked.combined(null)
    smooth = (
        asked.estimator.smooth and asked.aggregate != "max" and not np.isinf(getattr(asked.estimator, "order", 1.0))
    )
    return intervals.residual_norm(value, draws, spread, floors, sure.level, n, smooth=smooth)


def notes_of(preds: Predictions, asked: Asked) -> list[Note]:
    """What the data, the lens and the estimator have to say."""
    views, estimator = asked.views, asked.estimator
    own = estimator.notes(views[0]) if len(views) == 1 else estimator.notes_together(views)
    return [*preds.notes, *asked.lens.notes(preds), *own]


def cells_lack(asked: Asked) -> str:
    """Why the cells of a tally do not tell how sure a value is; empty where they do."""
    if len(asked.views) > 1:
        return "a tally does not keep the joint law of several views under resampling"
    if asked.views[0].joint:
        return "a tally does not keep how the residuals of a vector vary together"
    if isinstance(asked.estimator, Mean):
        return "a tally keeps the spread of the whole score only, not of this lens"
    return ""


def estimate_from_cells(
    asked: Asked,
    sure: Sureness,
    rng: np.random.Generator,
    null: Array | None,
    notes: list[Note],
    theirs: Array | None = None,
) -> Estimate:
    """One question answered from the cells of a tally; aggregates over classes get no interval there.

    `theirs` are the null draws of the estimator whose interval is shown, where that is another one.
    """
    if sure.resample == "rows":
        raise InputError(
            "TO205", "Resampling rows needs the rows.", "a tally", "Leave resample out, or use mode='exact'."
        )
    judge = asked.judge
    method = method_for(judge, sure, clustered=False, cells=True)
    resampled = None
    if sure.interval is None:
        interval, why = None, ""
    elif len(asked.views) > 1:
        notes = [
            *notes,
            Note(
                "TN402",
                "From a tally an aggregate over classes has no interval: the classes' joint law under resampling is not kept.",
            ),
        ]
        interval, why = None, ""
    elif why := cells_lack(asked):
        interval = None
    else:
        resampled = from_cells(judge, sure.resamples, rng) if method in DRAWN else None
        interval, why = interval_of(None, judge, method, sure, resampled, null if judge is asked else theirs, rng)
    return answer(asked, interval, why, null, sure, resampled.how if resampled else None, notes=notes)

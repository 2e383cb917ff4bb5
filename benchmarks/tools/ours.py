"""Calls of trueodds: the main call uses validated predictions; `from arrays` includes the validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import trueodds as to
from benchmarks.data import Arrays
from benchmarks.timed import Timed
from trueodds.binning.row_selections import RowSelections
from trueodds.estimators import ESTIMATORS
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds.resampling.bootstrap import bootstrap
from trueodds.resampling.cell_bootstrap import bootstrap_cells
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_draws_by_bin import draw_bin_statistics
from trueodds.resampling.tally_estimates import tally_estimand

DISTRIBUTION = "trueodds"

PROBE = 1000  # rows on which a fitted map is compared


def measured(name: str, lens: str, **settings: Any) -> Callable[[Arrays], dict[str, Timed]]:
    """The value of an estimator, from predictions and from arrays."""

    def answer(arrays: Arrays) -> dict[str, Timed]:
        def checked() -> to.Predictions:
            return to.Predictions(arrays["y"], arrays["P"])

        def ask(preds: to.Predictions) -> float:
            return to.measure(preds, name, lens=lens, interval=None, **settings).value

        # New predictions for every call, because cached results of a view must not count as speed.
        return {"": Timed(ask, fresh=checked), "from arrays": Timed(lambda: ask(checked()))}

    return answer


def resampled(arrays: Arrays) -> dict[str, Timed]:
    """A percentile interval: the resamples alone, and the complete `measure` call with value and noise floor."""
    lens, error = as_lens("confidence"), ESTIMATORS.make("ece", {})

    def alone(preds: to.Predictions) -> list[float]:
        (result,) = bootstrap(preds, [Estimand.from_predictions(error, lens, preds)], 1000, np.random.default_rng(0))
        return np.percentile(result.values[0], [2.5, 97.5])

    def measure_interval(preds: to.Predictions) -> list[float]:
        result = to.measure(preds, "ece", lens="confidence", interval="percentile", resamples=1000).interval
        return [result.low, result.high]

    def checked() -> to.Predictions:
        return to.Predictions(arrays["y"], arrays["P"])

    return {"": Timed(alone, fresh=checked), "measure with noise floor": Timed(measure_interval, fresh=checked)}


# The 15 estimators of the 2021 experiment with its rules: left-closed bins, the last adaptive bin takes what is left,
# the convex weights as they were released; for the confidence the adaptive and the convex bins lie on [1/K, 1].
BINNED = [
    {"partition": partition, "bins": bins, **mapping}
    for partition, mapping in (
        ("uniform", {"mapping": "one-bin", "closed": "left"}),
        ("equal-mass", {"mapping": "one-bin", "closed": "left"}),
        ("uniform", {"mapping": "convex", "weights": "swapped"}),
        ("equal-mass", {"mapping": "convex", "weights": "swapped"}),
    )
    for bins in (10, 30, "sqrt")
]
BANDWIDTHS = ("silverman", 0.1, 0.033)


def experiment(arrays: Arrays) -> Timed:
    """The inner loop of the 2021 experiment.

    Returns the mean of all estimates except the class-wise kernel estimate with Silverman's bandwidth.
    """
    return Timed(lambda: inner_loop(arrays["P"], arrays["y"], arrays["rows"]), value=lambda estimates: estimates.mean())


def inner_loop(P: np.ndarray, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The estimates for every set of rows, (sets, 29); one of the 30 is omitted because its reference is wrong."""
    preds, table = to.Predictions(y, P), []
    for lens in ("confidence", "classwise"):
        views = [RowSelections(view, rows) for view in as_lens(lens).views(preds)]
        span = {"range": "1/K"} if lens == "confidence" else {}
        for settings in BINNED:
            plain = settings["partition"] == "uniform" and settings["mapping"] == "one-bin"
            error = ESTIMATORS.make("ece_linear", settings if plain else settings | span)
            table.append(np.mean([error.evaluate_selections(sets) for sets in views], axis=0))
        for bandwidth in BANDWIDTHS:
            error = ESTIMATORS.make("ece_kde", {"bandwidth": bandwidth, **span})
            mean_errors = np.mean([error.evaluate_selections(sets) for sets in views], axis=0)
            if (lens, bandwidth) != ("classwise", "silverman"):
                table.append(mean_errors)
    return np.array(table).T


def paired(arrays: Arrays) -> Timed:
    """Test with redrawn labels whose statistic compares all pairs of rows; no peer has it for more than two classes."""
    return Timed(
        lambda preds: to.test(preds, "skce"),
        fresh=lambda: to.Predictions(arrays["y"], arrays["P"]),
        value=lambda verdict: verdict.statistic,
    )


def temperature(arrays: Arrays) -> Timed:
    """Fit, and return the inverse temperature."""
    return Timed(
        lambda preds: to.fit(preds, "temperature"),
        fresh=lambda: to.Predictions(arrays["y"], arrays["P"]),
        value=lambda calibrator: calibrator.calibration_map.beta,
    )


def timed_fit(name: str, also: dict[str, dict[str, Any]] | None = None) -> Callable[[Arrays], dict[str, Timed]]:
    """Fit, and return the mean square of recalibrated rows; `also` are other methods for the same job."""

    def answer(arrays: Arrays) -> dict[str, Timed]:
        def timed(method: str, **settings: Any) -> Timed:
            return Timed(
                lambda preds: to.fit(preds, method, **settings),
                fresh=lambda: to.Predictions(arrays["y"], arrays["P"]),
                value=lambda calibrator: np.square(calibrator.predict_proba(arrays["P"][:PROBE])).mean(),
            )

        others = {
            f"{method} {' '.join(settings.values())}".strip(): timed(method, **settings)
            for method, settings in (also or {}).items()
        }
        return {"": timed(name), **others}

    return answer


def draws(arrays: Arrays) -> dict[str, Timed]:
    """1,000 bootstrap resamples and null draws from a tally, and from cells with a hundred times as many rows."""
    lens, error = as_lens("confidence"), ESTIMATORS.make("ece", {})
    tally = to.tally(to.Predictions(arrays["y"], arrays["P"]))

    def small_estimand() -> Estimand:
        return tally_estimand(tally, error, lens)

    def large_estimand() -> Estimand:
        return Estimand(error, lens, tuple(times(view, 100) for view in tally.views(lens)))

    rng = np.random.default_rng(0)
    return {
        "bootstrap": Timed(lambda estimand: bootstrap_cells(estimand, 1000, rng), small_estimand, mean_replicate),
        "redraw": Timed(lambda estimand: draw_bin_statistics(estimand, 1000, rng), small_estimand, np.mean),
        "bootstrap, 100 × rows": Timed(
            lambda estimand: bootstrap_cells(estimand, 1000, rng), large_estimand, mean_replicate
        ),
        "redraw, 100 × rows": Timed(lambda estimand: draw_bin_statistics(estimand, 1000, rng), large_estimand, np.mean),
    }


def mean_replicate(replicates: Any) -> float:
    """The mean of the resamples."""
    return replicates.values.mean()


def times(view: View, factor: int) -> View:
    """The cells with the number of rows multiplied."""
    sums = {name: factor * view.sums(name) for name in ("ww", "wpp", "wpy", "wyy", "wwv", "wwr")}
    return View(
        view.p,
        view.y,
        factor * view.w,
        n=factor * view.n,
        sums=sums,
        partition_values=view.partition_values,
        classes=view.classes,
    )


ANSWERS = {
    "top-label": measured("ece", "confidence"),
    "class-wise": measured("ece", "classwise"),
    "equal-mass": measured("ece", "confidence", partition="equal-mass", bins=15),
    "smooth": measured("smece", "confidence"),
    "bootstrap": resampled,
    "experiment": experiment,
    "skce": paired,
    "temperature": temperature,
    "vector": timed_fit("vector", {"structured": {}}),
    "dirichlet": timed_fit("dirichlet", {"structured": {"form": "matrix"}}),
    "isotonic": timed_fit("isotonic"),
    "draws": draws,
}

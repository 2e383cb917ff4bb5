"""Calls of trueodds: the main call takes validated predictions, and the call "from arrays" includes the validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import trueodds as to
from benchmarks.peers.job_data import Arrays
from benchmarks.peers.timing import TimedCall
from trueodds.binning.sorted_scores import RowSelections
from trueodds.estimators import ESTIMATORS
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds.resampling.bootstrap import bootstrap, bootstrap_cells
from trueodds.resampling.cell_draws import CellRedraw
from trueodds.resampling.draws import evaluate
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.tally_estimand import tally_estimand

DISTRIBUTION = "trueodds"

N_COMPARED_ROWS = 1000  # rows on which recalibrated probabilities are compared

# The 12 binned estimators of the 2021 experiment (see estimating_eces.py), with its rules: bins are left-closed, the
# last bin of equal mass takes the remaining rows, and the convex weights are swapped as in the released code.
BINNED_SETTINGS = [
    {"partition": partition, "bins": bins, **mapping}
    for partition, mapping in (
        ("uniform", {"mapping": "one-bin", "closed": "left"}),
        ("equal-mass", {"mapping": "one-bin", "closed": "left"}),
        ("uniform", {"mapping": "convex", "weights": "swapped"}),
        ("equal-mass", {"mapping": "convex", "weights": "swapped"}),
    )
    for bins in (10, 30, "sqrt")
]
BANDWIDTHS = ("silverman", 0.1, 0.033)  # of its three kernel estimators


def make_predictions(arrays: Arrays) -> to.Predictions:
    """Validate the arrays without copying them, as `measure` does if it is given arrays.

    Each call gets new predictions, because cached results of a view must not count as speed.
    """
    return to.Predictions(arrays["y"], arrays["P"], copy=False)


def prepare_estimate(name: str, lens: str, **settings: Any) -> Callable[[Arrays], dict[str, TimedCall]]:
    """Return the function that prepares the calls of an estimator, from predictions and from arrays.

    Both keep the rows, as the peers do, however many there are.
    """

    def prepare_calls(arrays: Arrays) -> dict[str, TimedCall]:
        def estimate(data: to.Predictions | tuple[np.ndarray, np.ndarray]) -> float:
            return to.measure(data, name, lens=lens, interval=None, mode="exact", **settings).value

        return {
            "": TimedCall(estimate, make_argument=lambda: make_predictions(arrays)),
            "from arrays": TimedCall(lambda: estimate((arrays["y"], arrays["P"]))),
        }

    return prepare_calls


def prepare_bootstrap(arrays: Arrays) -> dict[str, TimedCall]:
    """Return the calls of a percentile interval: the resamples alone, and `measure` with value and noise floor."""
    lens, estimator = as_lens("confidence"), ESTIMATORS.make("ece", {})

    def resample(preds: to.Predictions) -> list[float]:
        estimands = [Estimand.from_predictions(estimator, lens, preds)]
        (replicates,) = bootstrap(preds, estimands, 1000, np.random.default_rng(0))
        return np.percentile(replicates.values[0], [2.5, 97.5])

    def measure_with_interval(preds: to.Predictions) -> list[float]:
        interval = to.measure(preds, "ece", lens="confidence", interval="percentile", resamples=1000).interval
        return [interval.low, interval.high]

    return {
        "": TimedCall(resample, make_argument=lambda: make_predictions(arrays)),
        "measure with noise floor": TimedCall(measure_with_interval, make_argument=lambda: make_predictions(arrays)),
    }


def prepare_experiment(arrays: Arrays) -> TimedCall:
    """Return the call that computes the estimates of the 2021 experiment for every sample; its value is their mean."""
    return TimedCall(
        lambda: estimate_samples(arrays["P"], arrays["y"], arrays["rows"]),
        extract_value=lambda estimates: estimates.mean(),
    )


def estimate_samples(P: np.ndarray, y: np.ndarray, sample_rows: np.ndarray) -> np.ndarray:
    """Return the estimates (n_samples, 29) of samples with these row numbers, in the order of estimating_eces.py.

    The class-wise kernel estimate with Silverman's bandwidth is left out, because its reference is wrong. As in the
    experiment, all bins of the confidence lie on [1/K, 1], except for uniform bins without convex weights.
    """
    preds, columns = to.Predictions(y, P), []
    for lens in ("confidence", "classwise"):
        selections = [RowSelections(view, sample_rows) for view in as_lens(lens).views(preds)]
        range_setting = {"range": "1/K"} if lens == "confidence" else {}
        for settings in BINNED_SETTINGS:
            is_standard = settings["partition"] == "uniform" and settings["mapping"] == "one-bin"
            estimator = ESTIMATORS.make("ece_linear", settings if is_standard else settings | range_setting)
            columns.append(np.mean([estimator.evaluate_selections(sets) for sets in selections], axis=0))
        for bandwidth in BANDWIDTHS:
            estimator = ESTIMATORS.make("ece_kde", {"bandwidth": bandwidth, **range_setting})
            mean_estimates = np.mean([estimator.evaluate_selections(sets) for sets in selections], axis=0)
            if (lens, bandwidth) != ("classwise", "silverman"):
                columns.append(mean_estimates)
    return np.array(columns).T


def prepare_skce_test(arrays: Arrays) -> TimedCall:
    """Return the call of a test with redrawn labels whose statistic compares all pairs of rows.

    No peer has it for more than two classes.
    """
    return TimedCall(
        lambda preds: to.test(preds, "skce"),
        make_argument=lambda: make_predictions(arrays),
        extract_value=lambda verdict: verdict.statistic,
    )


def prepare_temperature_fit(arrays: Arrays) -> TimedCall:
    """Return the call that fits a temperature; its value is the inverse temperature."""
    return TimedCall(
        lambda preds: to.fit(preds, "temperature"),
        make_argument=lambda: make_predictions(arrays),
        extract_value=lambda calibrator: calibrator.calibration_map.beta,
    )


def prepare_fit(
    name: str, other_methods: Mapping[str, dict[str, Any]] | None = None
) -> Callable[[Arrays], dict[str, TimedCall]]:
    """Return the function that prepares the fit of a calibrator, and those of other methods for the same job.

    `other_methods` has their settings by name. The value of a call is the mean square of recalibrated rows.
    """

    def prepare_calls(arrays: Arrays) -> dict[str, TimedCall]:
        def fit_call(method: str, **settings: Any) -> TimedCall:
            return TimedCall(
                lambda preds: to.fit(preds, method, **settings),
                make_argument=lambda: make_predictions(arrays),
                extract_value=lambda calibrator: np.square(
                    calibrator.predict_proba(arrays["P"][:N_COMPARED_ROWS])
                ).mean(),
            )

        other_calls = {
            f"{method} {' '.join(settings.values())}".strip(): fit_call(method, **settings)
            for method, settings in (other_methods or {}).items()
        }
        return {"": fit_call(name), **other_calls}

    return prepare_calls


def prepare_draws(arrays: Arrays) -> dict[str, TimedCall]:
    """Return the calls of 1,000 bootstrap resamples and null draws from a tally, also with 100 times the rows."""
    lens, estimator = as_lens("confidence"), ESTIMATORS.make("ece", {})
    tally = to.tally(make_predictions(arrays))

    def small_estimand() -> Estimand:
        return tally_estimand(tally, estimator, lens)

    def large_estimand() -> Estimand:
        return Estimand(estimator, lens, tuple(multiply_rows(view, 100) for view in tally.views(lens)))

    rng = np.random.default_rng(0)

    def resample(estimand: Estimand) -> Any:
        return bootstrap_cells(estimand, 1000, rng)

    def redraw(estimand: Estimand) -> Any:
        return evaluate([estimand], CellRedraw(1000, rng))

    return {
        "bootstrap": TimedCall(resample, small_estimand, mean_replicate),
        "redraw": TimedCall(redraw, small_estimand, np.mean),
        "bootstrap, 100 × rows": TimedCall(resample, large_estimand, mean_replicate),
        "redraw, 100 × rows": TimedCall(redraw, large_estimand, np.mean),
    }


def mean_replicate(replicates: Any) -> float:
    """Return the mean of the values of the bootstrap resamples."""
    return replicates.values.mean()


def multiply_rows(view: View, factor: int) -> View:
    """Return the cells of a tally's view with `factor` times as many rows in each."""
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


CALLS_BY_TASK = {
    "top-label": prepare_estimate("ece", "confidence"),
    "class-wise": prepare_estimate("ece", "classwise"),
    "equal-mass": prepare_estimate("ece", "confidence", partition="equal-mass", bins=15),
    "smooth": prepare_estimate("smece", "confidence"),
    "bootstrap": prepare_bootstrap,
    "experiment": prepare_experiment,
    "skce": prepare_skce_test,
    "temperature": prepare_temperature_fit,
    "vector": prepare_fit("vector", {"structured": {}}),
    "dirichlet": prepare_fit("dirichlet", {"structured": {"form": "matrix"}}),
    "isotonic": prepare_fit("isotonic"),
    "draws": prepare_draws,
}

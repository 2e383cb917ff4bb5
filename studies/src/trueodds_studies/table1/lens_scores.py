"""Simulated rows of the six predictions, and the results of every estimator and test for them with one lens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from trueodds.api.measure import measure
from trueodds.api.test import test
from trueodds.core.errors import InputError
from trueodds.core.registry import Registry
from trueodds.core.results import Estimate
from trueodds.core.suggestions import suggest_names
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS
from trueodds.lenses.lens_by_name import as_lens
from trueodds_studies.pathologies.multiclass_toys import CALIBRATED_LENSES, OTHER_LENSES, SIX_PREDICTIONS
from trueodds_studies.pathologies.toy import distinct_ece, round_sum

LENSES = ("confidence", "top-label", "classwise", *CALIBRATED_LENSES[1:], *OTHER_LENSES, "canonical")
"""Every lens for three classes; `positive` requires two."""

COPIES = (
    50  # copies of 60 rows with the shares of the table: 3,000 rows, in which frequencies equal probabilities exactly
)
_ROWS_PER_PREDICTION = 10  # in 60 rows; the probabilities in the table are tenths
_STREAM = 6  # distinguishes the random streams from those of rng=0, from which tests redraw labels


def check_lens(name: str) -> str:
    """Return the name of a lens; an unknown one is an InputError."""
    if name not in LENSES:
        raise InputError("TO201", "The study has no lens of that name.", repr(name), suggest_names(name, LENSES))
    return name


def probabilities_and_rates(calibrated: bool = False) -> tuple[Array, Array]:
    """Predicted and true probabilities of the three classes, (6, 3) each; they are equal for a calibrated model."""
    predicted = np.array(list(SIX_PREDICTIONS))
    return predicted, predicted if calibrated else np.array(list(SIX_PREDICTIONS.values()))


def draw_rows(rows: int, seed: int, number: int, *, calibrated: bool = False) -> Predictions:
    """A data set in random order: each prediction equally often, labels drawn from its true probabilities.

    The order is random because some methods pair neighboring rows, and neighbors with equal predictions would be a
    different experiment.
    """
    rng = np.random.default_rng([seed, number, int(calibrated), _STREAM])
    predicted, true_probs = probabilities_and_rates(calibrated)
    prediction_index = rng.permutation(np.arange(rows) % len(predicted))
    y = (true_probs.cumsum(axis=1)[prediction_index] <= rng.random(rows)[:, None]).sum(axis=1)
    return Predictions(np.minimum(y, 2), predicted[prediction_index])  # a cumulative sum may be less than 1 by rounding


def exact_rows(*, calibrated: bool = False) -> Predictions:
    """Rows whose class frequencies equal the true probabilities exactly."""
    predicted, true_probs = probabilities_and_rates(calibrated)
    class_counts = np.rint(_ROWS_PER_PREDICTION * COPIES * true_probs).astype(int)
    prediction_index = np.repeat(np.arange(len(predicted)), class_counts.sum(axis=1))
    y = np.concatenate([np.repeat(np.arange(3), counts) for counts in class_counts])
    order = np.random.default_rng(0).permutation(len(y))
    return Predictions(y[order], predicted[prediction_index[order]])


ALPHA = 0.05


def exact_lens_error(lens: str) -> dict[str, Any]:
    """`views`: number of views of a lens; `exact`: its ECE with one bin per prediction and exact frequencies."""
    preds = exact_rows()
    views = as_lens(lens).views(preds)
    return {"views": len(views), "exact": distinct_ece(preds, lens)}


def estimate_rows(lens: str, rows: int, sets: int, resamples: int, seed: int) -> list[dict[str, Any]]:
    """One row per estimator: values for rows with exact frequencies, and for a simulated data set with interval.

    `AUC` is the share of pairs of a simulated data set and one of a calibrated model with the same
    predictions in which the first has the larger error: 1 for perfect discrimination, 0.5 for none. It is
    computed for the canonical lens; for a lens whose views are calibrated, both have the same distribution.
    """
    table: list[dict[str, Any]] = []
    for name in ESTIMATORS.names():
        settings = _settings_for_lens(
            ESTIMATORS, name, partial(measure, draw_rows(60, seed, 0), name, lens=lens, interval=None)
        )
        if isinstance(settings, InputError):
            table.append({"estimator": name, "needs": describe_refusal(settings)})
            continue
        answer = measure(draw_rows(rows, seed, 0), name, lens=lens, resamples=resamples, rng=seed, **settings)
        row = {
            "estimator": name,
            "settings": describe_settings(settings),
            "exact": round_sum(_point_estimate(exact_rows(), name, lens, settings)),
        }
        row |= {
            "if calibrated": round_sum(_point_estimate(exact_rows(calibrated=True), name, lens, settings)),
            **_estimate_row(answer),
        }
        if lens == "canonical":
            row["AUC"] = _auc(name, lens, settings, rows, sets, seed)
        table.append(row)
    return table


def verdict_rows(lens: str, rows: int, sets: int, redraws: int, seed: int) -> list[dict[str, Any]]:
    """Every test: p-value of the first data set, and rejection rate at 5 % over all data sets.

    For the canonical lens also the rejection rate for a calibrated model, which is the size of the test.
    """
    table: list[dict[str, Any]] = []
    for name in TESTS.names():
        draw_settings = {"resamples": redraws} if TESTS.has_setting(name, "resamples") else {}
        settings = _settings_for_lens(TESTS, name, partial(test, draw_rows(60, seed, 0), name, lens=lens))
        if isinstance(settings, InputError):
            table.append({"test": name, "needs": describe_refusal(settings)})
            continue

        def simulate_pvalue(
            number: int,
            calibrated: bool,
            name: str = name,
            test_settings: dict[str, Any] = settings | draw_settings,
        ) -> float:
            """The p-value of one simulated data set."""
            drawn = draw_rows(rows, seed, number, calibrated=calibrated)
            return test(drawn, name, lens=lens, rng=number, **test_settings).pvalue

        pvalues = [simulate_pvalue(number, False) for number in range(sets)]
        row: dict[str, Any] = {
            "test": name,
            "settings": describe_settings(settings),
            "p": pvalues[0],
            "rejects": _rejection_rate(pvalues),
        }
        if lens == "canonical":
            row["rejects if calibrated"] = _rejection_rate([simulate_pvalue(number, True) for number in range(sets)])
        table.append(row)
    return table


def describe_refusal(refusal: InputError) -> str:
    """An error message in one line, with its code.

    >>> describe_refusal(InputError("TO205", "It reads one score per row.", "vectors", "Use classwise."))
    'TO205: It reads one score per row.'
    """
    return f"{refusal.code}: {refusal.problem}"


def describe_settings(settings: dict[str, Any]) -> str:
    """Settings as text, `name=value`."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _settings_for_lens(registry: Registry, name: str, apply_method: Callable[..., Any]) -> Any:
    """The settings with which a method accepts a lens: the defaults, else one bin per prediction; or the first error.

    `apply_method` applies the method with keyword settings, and raises an InputError if it refuses.
    """
    first_error: InputError | None = None
    for settings in _candidate_settings(registry, name):
        try:
            apply_method(**settings)
        except InputError as refusal:
            first_error = first_error or refusal
        else:
            return settings
    return first_error


def _candidate_settings(registry: Registry, name: str) -> Iterator[dict[str, Any]]:
    """The default settings, and one bin per prediction for methods with a partition."""
    yield {}
    if registry.has_setting(name, "partition"):
        yield {"partition": "distinct"}


def _point_estimate(preds: Predictions, name: str, lens: str, settings: dict[str, Any]) -> float:
    return float(measure(preds, name, lens=lens, interval=None, **settings))


def _auc(name: str, lens: str, settings: dict[str, Any], rows: int, sets: int, seed: int) -> float:
    """Share of pairs of a data set and one of a calibrated model with the larger error in the first; ties count 1/2.

    This is the area under the ROC curve (AUC), and the Mann-Whitney statistic.
    """
    estimator = ESTIMATORS.make(name, settings)

    def simulate_losses(calibrated: bool) -> Array:
        """The estimates as losses for all data sets, (sets,)."""
        data_sets = (draw_rows(rows, seed, number, calibrated=calibrated) for number in range(sets))
        estimates = [_point_estimate(preds, name, lens, settings) for preds in data_sets]
        return np.asarray(estimator.as_loss(np.array(estimates)))

    losses, null_losses = simulate_losses(False)[:, None], simulate_losses(True)[None, :]
    larger = (losses > null_losses + 1e-12).mean()
    tied = (np.abs(losses - null_losses) <= 1e-12).mean()
    return float(larger + tied / 2)


def _estimate_row(answer: Estimate) -> dict[str, float | None]:
    """Value, limits of the interval, and noise floor."""
    low, high = (answer.interval.low, answer.interval.high) if answer.interval else (None, None)
    return {"estimate": answer.value, "low": low, "high": high, "noise floor": answer.noise_floor}


def _rejection_rate(pvalues: list[float]) -> float:
    """Share of p-values of at most 5 %."""
    return float(np.mean([p <= ALPHA for p in pvalues]))

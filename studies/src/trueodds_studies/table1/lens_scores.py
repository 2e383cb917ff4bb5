"""Simulate rows of the six predictions, and apply every estimator and test to them through one lens."""

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
"""Every lens for three classes; `positive` is for two."""

COPIES = 50  # of the sixty rows whose shares are those of the table: all that a statistic can know, 3,000 rows
_CALIBRATED_COPIES = 10  # shares of the table are tenths
_TABLE_COPIES = 6  # a stream of their own: [0, 0, 0] would be that of rng=0, from which tests redraw labels


def check_lens(name: str) -> str:
    """The name itself; an unknown lens is an InputError."""
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
    rng = np.random.default_rng([seed, number, int(calibrated), _TABLE_COPIES])
    predicted, true_probs = probabilities_and_rates(calibrated)
    which = rng.permutation(np.arange(rows) % len(predicted))
    y = (true_probs.cumsum(axis=1)[which] <= rng.random(rows)[:, None]).sum(axis=1)
    return Predictions(np.minimum(y, 2), predicted[which])  # the last sum is 1 but for rounding


def exact_rows(*, calibrated: bool = False) -> Predictions:
    """Rows whose class frequencies equal the true probabilities exactly."""
    predicted, true_probs = probabilities_and_rates(calibrated)
    times = np.rint(_CALIBRATED_COPIES * COPIES * true_probs).astype(int)
    which = np.repeat(np.arange(len(predicted)), times.sum(axis=1))
    y = np.concatenate([np.repeat(np.arange(3), counts) for counts in times])
    order = np.random.default_rng(0).permutation(len(y))
    return Predictions(y[order], predicted[which[order]])


ALPHA = 0.05


def exact_lens_error(lens: str) -> dict[str, Any]:
    """The number of views of a lens, and the exact error in them."""
    preds = exact_rows()
    views = as_lens(lens).views(preds)
    return {"views": len(views), "exact": distinct_ece(preds, lens)}


def estimate_rows(lens: str, rows: int, sets: int, resamples: int, seed: int) -> list[dict[str, Any]]:
    """Every estimator, on rows with the exact frequencies and on simulated rows, with interval and noise floor.

    `AUC` is the share of pairs of a simulated data set and one of a calibrated model with the same
    predictions in which the first has the larger error: 1 for perfect discrimination, .5 for none. It is
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
            row["AUC"] = _mann_whitney(name, lens, settings, rows, sets, seed)
        table.append(row)
    return table


def verdict_rows(lens: str, rows: int, sets: int, redraws: int, seed: int) -> list[dict[str, Any]]:
    """Every test: p-value of the first data set, and rejection rate at 5 % over all data sets.

    For the canonical lens also the rejection rate for a calibrated model, which is the size of the test.
    """
    table: list[dict[str, Any]] = []
    for name in TESTS.names():
        resample_settings = {"resamples": redraws} if TESTS.has_setting(name, "resamples") else {}
        settings = _settings_for_lens(TESTS, name, partial(test, draw_rows(60, seed, 0), name, lens=lens))
        if isinstance(settings, InputError):
            table.append({"test": name, "needs": describe_refusal(settings)})
            continue

        def p(
            number: int,
            calibrated: bool,
            name: str = name,
            test_settings: dict[str, Any] = settings | resample_settings,
        ) -> float:
            return float(
                test(draw_rows(rows, seed, number, calibrated=calibrated), name, lens=lens, rng=number, **test_settings)
            )

        pvalues = [p(number, False) for number in range(sets)]
        row: dict[str, Any] = {
            "test": name,
            "settings": describe_settings(settings),
            "p": pvalues[0],
            "rejects": _share(pvalues),
        }
        if lens == "canonical":
            row["rejects if calibrated"] = _share([p(number, True) for number in range(sets)])
        table.append(row)
    return table


def describe_refusal(refusal: InputError) -> str:
    """An error message in one line, with its code.

    >>> describe_refusal(InputError("TO205", "It reads one score per row.", "vectors", "Use classwise."))
    'TO205: It reads one score per row.'
    """
    return f"{refusal.code}: {refusal.problem}"


def describe_settings(settings: dict[str, Any]) -> str:
    """Settings in words."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _settings_for_lens(registry: Registry, name: str, ask: Callable[..., Any]) -> Any:
    """The settings with which a method accepts this lens: the defaults, else one bin per prediction; or the error."""
    first: InputError | None = None
    for settings in _candidate_settings(registry, name):
        try:
            ask(**settings)
        except InputError as refusal:
            first = first or refusal
        else:
            return settings
    return first


def _candidate_settings(registry: Registry, name: str) -> Iterator[dict[str, Any]]:
    yield {}
    if registry.has_setting(name, "partition"):
        yield {"partition": "distinct"}


def _point_estimate(preds: Predictions, name: str, lens: str, settings: dict[str, Any]) -> float:
    return float(measure(preds, name, lens=lens, interval=None, **settings))


def _mann_whitney(name: str, lens: str, settings: dict[str, Any], rows: int, sets: int, seed: int) -> float:
    estimator = ESTIMATORS.make(name, settings)
    wrong, right = (
        estimator.as_loss(
            np.array(
                [
                    _point_estimate(draw_rows(rows, seed, t, calibrated=calibrated), name, lens, settings)
                    for t in range(sets)
                ]
            )
        )
        for calibrated in (False, True)
    )
    larger = (wrong[:, None] > right[None, :] + 1e-12).mean()
    return float(larger + (np.abs(wrong[:, None] - right[None, :]) <= 1e-12).mean() / 2)


def _estimate_row(answer: Estimate) -> dict[str, float | None]:
    low, high = (answer.interval.low, answer.interval.high) if answer.interval else (None, None)
    return {"estimate": answer.value, "low": low, "high": high, "noise floor": answer.noise_floor}


def _share(pvalues: list[float]) -> float:
    return float(np.mean([p <= ALPHA for p in pvalues]))

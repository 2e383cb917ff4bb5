"""What do all estimators and tests of the registries say of the six predictions through one lens?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from trueodds.api.verbs import measure, test
from trueodds.core.errors import InputError
from trueodds.core.registry import Registry
from trueodds.core.results import Estimate
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS
from trueodds.lenses.lens import as_lens
from trueodds_studies.lenses.drawn import drawn, exact_rows
from trueodds_studies.toys.base import distinct_ece, tidy

ALPHA = 0.05


def lens_alone(lens: str) -> dict[str, Any]:
    """How many views a lens makes, and the error in them when nothing is left to chance."""
    preds = exact_rows()
    views = as_lens(lens).views(preds)
    return {"views": len(views), "exact": distinct_ece(preds, lens)}


def estimates(lens: str, rows: int, sets: int, resamples: int, seed: int) -> list[dict[str, Any]]:
    """Every estimator: on rows that came exactly so, and on drawn ones with its interval and noise floor.

    `told apart` is the share of pairs of a drawn data set and one of a calibrated model with the same predictions in which the first
    looks worse: 1 for one that sees the error, .5 for one that is blind. It is for the canonical lens; through a lens
    whose views are calibrated both have the same law.
    """
    table: list[dict[str, Any]] = []
    for name in ESTIMATORS.names():
        settings = _fits(ESTIMATORS, name, partial(measure, drawn(60, seed, 0), name, lens=lens, interval=None))
        if isinstance(settings, InputError):
            table.append({"estimator": name, "needs": needs(settings)})
            continue
        answer = measure(drawn(rows, seed, 0), name, lens=lens, resamples=resamples, rng=seed, **settings)
        row = {
            "estimator": name,
            "settings": describe_settings(settings),
            "exact": tidy(_bare(exact_rows(), name, lens, settings)),
        }
        row |= {
            "if calibrated": tidy(_bare(exact_rows(calibrated=True), name, lens, settings)),
            **_estimate_row(answer),
        }
        if lens == "canonical":
            row["told apart"] = _mann_whitney(name, lens, settings, rows, sets, seed)
        table.append(row)
    return table


def verdicts(lens: str, rows: int, sets: int, redraws: int, seed: int) -> list[dict[str, Any]]:
    """Every test: p of the first data set, and how often it rejects at 5 % in all of them.

    Through the canonical lens also how often it rejects a calibrated model: its level at this number of rows.
    """
    table: list[dict[str, Any]] = []
    for name in TESTS.names():
        resample_settings = {"resamples": redraws} if TESTS.takes(name, "resamples") else {}
        settings = _fits(TESTS, name, partial(test, drawn(60, seed, 0), name, lens=lens))
        if isinstance(settings, InputError):
            table.append({"test": name, "needs": needs(settings)})
            continue

        def p(
            number: int,
            calibrated: bool,
            name: str = name,
            test_settings: dict[str, Any] = settings | resample_settings,
        ) -> float:
            return float(
                test(drawn(rows, seed, number, calibrated=calibrated), name, lens=lens, rng=number, **test_settings)
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


def needs(refusal: InputError) -> str:
    """A refusal in one line, with its code.

    >>> needs(InputError("TO205", "It reads one score per row.", "vectors", "Use classwise."))
    'TO205: It reads one score per row.'
    """
    return f"{refusal.code}: {refusal.problem}"


def describe_settings(settings: dict[str, Any]) -> str:
    """Settings in words."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _fits(registry: Registry, name: str, ask: Callable[..., Any]) -> Any:
    """The settings with which a member takes this lens: its own, else rows of the same prediction pooled; or the refusal."""
    first: InputError | None = None
    for settings in _tries(registry, name):
        try:
            ask(**settings)
        except InputError as refusal:
            first = first or refusal
        else:
            return settings
    return first


def _tries(registry: Registry, name: str) -> Iterator[dict[str, Any]]:
    yield {}
    if registry.takes(name, "partition"):
        yield {"partition": "distinct"}


def _bare(preds: Predictions, name: str, lens: str, settings: dict[str, Any]) -> float:
    return float(measure(preds, name, lens=lens, interval=None, **settings))


def _mann_whitney(name: str, lens: str, settings: dict[str, Any], rows: int, sets: int, seed: int) -> float:
    estimator = ESTIMATORS.make(name, settings)
    wrong, right = (
        estimator.as_loss(
            np.array([_bare(drawn(rows, seed, t, calibrated=calibrated), name, lens, settings) for t in range(sets)])
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

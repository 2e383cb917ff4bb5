"""Coverage of the default intervals for simulated models with known calibration error."""

from __future__ import annotations

from functools import partial

import numpy as np

from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_all
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.noise_floor import noise_floor_draws

ERRORS = [
    ("ece", {}),
    ("mce", {"bins": 10}),
    ("rmsce", {}),
    ("rmsce", {"partition": "equal-mass", "bins": 10}),
    ("brier", {}),
]
MODELS = [(1.0, 0.0), (1 / 1.1, 0.0), (1 / 1.3, 0.0), (1 / 1.6, 0.35), (1 / 2.5, 0.5)]  # slope and shift in logits


def odds(x: np.ndarray) -> np.ndarray:
    """Logistic function."""
    return 1 / (1 + np.exp(-x))


def truth(name: str, estimator: object, slope: float, shift: float) -> float:
    """True value of the binned error (or of a proper score), from two million rows."""
    score = np.random.default_rng(99).normal(0, 1.3, 2_000_000)
    p, q = odds(score), odds(slope * score + shift)
    if name == "brier":
        return float((q * (1 - p) ** 2 + (1 - q) * p**2).mean())
    return float(estimator.value(View(p, q)))  # type: ignore[attr-defined]


def show(sets: int) -> None:
    """Print one line per error, model and number of rows."""
    print(
        f"{'error':8} {'bins':14} {'slope':>5} {'n':>5} {'truth':>7} {'method':14} {'covers':>7} {'above':>6}"
        f" {'width':>7}"
    )
    for name, settings in ERRORS:
        estimator = ESTIMATORS.make(name, settings)
        for slope, shift in MODELS:
            true = truth(name, estimator, slope, shift)
            for n in (30, 300, 1000, 5000):
                rng = np.random.default_rng(5)
                hits = above = 0
                width = 0.0
                for _ in range(sets):
                    score = rng.normal(0, 1.3, n)
                    preds = Predictions((rng.random(n) < odds(slope * score + shift)).astype(int), odds(score))
                    estimands = [Estimand.from_predictions(estimator, as_lens("positive"), preds)]
                    drawn = partial(noise_floor_draws, preds, rng=rng, redraws=199)
                    (estimate,) = estimate_all(preds, estimands, IntervalSpec(resamples=400), rng, drawn)
                    low, high = (estimate.interval.low, estimate.interval.high) if estimate.interval else (0.0, 1.0)
                    hits += low <= true <= high
                    above += true > high
                    width += high - low
                settings_text = " ".join(str(value) for value in settings.values()) or "default"
                print(
                    f"{name:8} {settings_text:14} {slope:5.2f} {n:5d} {true:7.4f}"
                    f" {estimate.interval.method if estimate.interval else 'none':14} {hits / sets:7.3f}"
                    f" {above / sets:6.3f} {width / sets:7.4f}",
                    flush=True,
                )

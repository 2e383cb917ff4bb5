"""Simulate how often `trueodds.table` prints a bold value, for models that are equally good and for a better one.

``python -m tests.api.bold_values REPETITIONS`` prints the figures of the documentation.
"""

from __future__ import annotations

import sys
from statistics import NormalDist

import numpy as np

import trueodds as to

MEASURES = ("accuracy", "ece", "debiased_l2", "brier", "log_loss")
# The standard deviation of the error that each model adds to the true log-odds. Models with the same one have the same
# expected value of every measure, because they are exchangeable.
NOISE = {
    "three equal models": (1.0, 1.0, 1.0),
    "two equal models and a worse one": (0.5, 0.5, 3.0),
    "one better model": (0.0, 1.0, 1.0),
}


def simulate_models(noise: tuple[float, ...], n: int, rng: np.random.Generator) -> dict[str, to.Predictions]:
    """Predictions of models that know the true log-odds up to an error, for the same outcomes."""
    log_odds = rng.normal(0, 1.5, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)
    return {
        f"model {number}": to.Predictions(y, 1 / (1 + np.exp(-(log_odds + scale * rng.normal(size=n)))))
        for number, scale in enumerate(noise, 1)
    }


def bold_values(
    case: str, repetition: int, measures: tuple[str, ...] = MEASURES, n: int = 500
) -> dict[str, str | None]:
    """The bold model of each measure in one simulated table."""
    rng = np.random.default_rng([repetition, list(NOISE).index(case)])
    return to.table(simulate_models(NOISE[case], n, rng), list(measures), resamples=500, rng=repetition).bold


def wilson_interval(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share."""
    z, share = NormalDist().inv_cdf((1 + level) / 2), successes / n
    center, half = (share + z**2 / (2 * n)), z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return float((center - half) / (1 + z**2 / n)), float((center + half) / (1 + z**2 / n))


def main(repetitions: int) -> None:
    """Print the share of tables with a bold value, and the share of every measure."""
    for case in NOISE:
        drawn = [bold_values(case, repetition) for repetition in range(repetitions)]
        tables = sum(any(model is not None for model in table.values()) for table in drawn)
        low, high = wilson_interval(tables, repetitions)
        sys.stdout.write(f"{case}: {tables} of {repetitions} tables have a bold value [{low:.4f}, {high:.4f}]\n")
        for measure in MEASURES:
            first = sum(table[measure] == "model 1" for table in drawn)
            other = sum(table[measure] not in (None, "model 1") for table in drawn)
            sys.stdout.write(f"  {measure}: model 1 in {first}, another one in {other}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""Random values for any setting and any array: those that it takes, and those that nobody meant."""

from __future__ import annotations

import decimal
import fractions
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.uniform import Uniform

Draw = Callable[[np.random.Generator], Any]


class Speechless:
    """An object that cannot be written down."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Incomparable:
    """An object that equals nothing, and is no key of a dict."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no ==")


ODD: tuple[Any, ...] = (
    None, True, False, np.True_, 0, 1, 2, -1, 2**53 + 1, 2**63, 10**400, -(10**400), 10**5000,
    -0.0, 0.5, 2.5, 1e300, -1e300, 1e-300, 5e-324, math.nan, math.inf, -math.inf,
    np.int64(3), np.int8(2), np.uint64(2**64 - 1), np.float32(0.3), np.float16(0.5), np.float64("nan"),
    np.longdouble(0.5),
    decimal.Decimal("0.5"), decimal.Decimal("NaN"), fractions.Fraction(1, 2), fractions.Fraction(10**400), 1j,
    np.array(3), np.array([1, 2]), np.array([]), np.zeros((2, 2)), np.array(["a", "b"], dtype=object), np.ma.masked,
    [], [1], [0.1, 0.9], [0, 0.5, 1], (1, 2), {}, {"a": 1}, {1, 2}, frozenset({1}), range(3), [[[]]],
    [[0, 1], [2]], [None],
    b"", b"x", "", " ", "auto", "tv", "unifrom", "é\x00", "x" * 5000, "9" * 5000, "1e400", np.str_("auto"),
    "top-" + "9" * 5000, "rank:0", "rank:-1", "top-0", "class:", "class:[1, 2]", "class:" + "9" * 5000, "mass:0",
    "mass:" + "9" * 5000, "lp:0", "lp:" + "9" * 5000, "groups:", "groups:[[[0]]]", "groups:[[0],[1e400]]",
    "groups:" + "[" * 5000,
    pd.NA, pd.NaT, pd.Series([1, 2]), pd.Series(dtype=float), pd.DataFrame({"a": [1]}), np.datetime64("2020-01-01"),
    object(), Speechless(), Incomparable(), int, lambda: None, lambda *a: 1, lambda *a: None, len,
)  # fmt: skip


def unwatched(*_progress: Any) -> None:
    """A progress that nobody watches."""


def odd(rng: np.random.Generator) -> Any:
    """A value that few settings take."""
    return ODD[rng.integers(len(ODD))]


def one_of(*values: Any) -> Draw:
    """A draw of one of these."""
    return lambda rng: values[rng.integers(len(values))]


def between(low: float, high: float) -> Draw:
    """A draw of a number, as Python's or as NumPy's."""

    def draw(rng: np.random.Generator) -> Any:
        x = rng.uniform(low, high)
        return (float(x), np.float64(x), np.float32(x))[rng.integers(3)]

    return draw


def integer(low: int, high: int) -> Draw:
    """A draw of an integer, as Python's or as NumPy's."""

    def draw(rng: np.random.Generator) -> Any:
        x = int(rng.integers(low, high + 1))
        return (x, np.int64(x), np.int32(x))[rng.integers(3)]

    return draw


def edges(rng: np.random.Generator) -> Any:
    """Edges of bins, as a list or an array."""
    inner = np.unique(rng.integers(1, 20, rng.integers(1, 5)) / 20)
    values = np.concatenate(([0.0], inner, [1.0]))
    return values if rng.random() < 0.5 else values.tolist()


# What most members take under a name; others take little of it, and refuse the rest.
PLAUSIBLE: dict[str, Draw] = {
    "bins": lambda rng: (integer(1, 30)(rng), "auto", "sqrt", edges(rng))[min(3, int(rng.integers(8)))],
    "partition": one_of(
        "uniform",
        "equal-mass",
        "mass:3",
        "sweep",
        "distinct",
        "median-variance",
        "predicted-class",
        "simplex-grid",
        Uniform(7),
        EqualMass(3),
    ),
    "min_size": integer(1, 5),
    "closed": one_of("left", "right"),
    "range": one_of(None, "1/K"),
    "distance": one_of(
        "tv", "l1", "l2", "max", "kl", "sq-euclidean", "lp", "lp:3", lambda a, b: float(np.abs(a - b).sum())
    ),
    "order": one_of(1, 1.0, 2, 1.5, 3, 1000.0, math.inf),
    "min_count": integer(1, 3),
    "threshold": between(0.05, 0.95),
    "normalize": one_of(True, False, "kept", "all"),
    "form": one_of(
        "auto", "unbiased", "biased", "block", "t_mn", "kumar", "dpe", "atb", "quantile", "score", "likelihood-ratio"
    ),
    "bandwidth": one_of("auto", "silverman", "median", 0.1, 0.5, 1, np.float32(0.2)),
    "kernel": one_of("exponential", "gaussian", "triweight", lambda P, Q: P @ Q.T),
    "min_prob": one_of(0.0, 1e-12, 1e-6, 1e-3),
    "decomposition": one_of(None, "murphy", "corp", "ferro-fricker"),
    "level": between(0.5, 0.99),
    "resamples": integer(2, 9),
    "folds": integer(2, 4),
    "rng": integer(0, 9),
    "lens": one_of(
        None,
        None,
        None,
        "confidence",
        "classwise",
        "canonical",
        "positive",
        "class:0",
        "class:1",
        "top-1",
        "top-2",
        "rank:2",
        "top-label",
        "groups:[[0],[1,2]]",
    ),
    "aggregate": one_of(None, "mean", "max", "sum", "prevalence", "weight"),
    "region": one_of(None, "confidence > 0.5", {"confidence": (0.2, 1)}, lambda P: P[:, 0] >= 0),
    "mode": one_of(None, None, "exact", "tally"),
    "weight_kind": one_of("importance", "importance", "frequency"),
    "interval": one_of(None, None, None, "auto", "percentile", "bca"),
    "resample": one_of("auto", "rows", "cells"),
    "null": one_of("asymptotic", "redraw", "auto", "swap"),
    "redraw": one_of("labels", "both"),
    "statistic": one_of("ece", "brier", "rmsce"),
    "hypothesis": one_of("calibrated", lambda P: P),
    "margin": between(0.01, 0.5),
    "cost": one_of([[0, 1], [1, 0]], np.array([[0.0, 5.0], [1.0, 0.0]]), [[0, 1, 2], [1, 0, 1]]),
    "utility": one_of("top", "top-2", "class:0", [0, 1], [0.0, 1.0, 2.0]),
    "calibrator": one_of("isotonic", "temperature", "platt"),
    "penalty": one_of("auto", "scaled", 0.0, 1, 0.5),
    "baseline": one_of(0, -1, None, "class:1"),
    "priors": one_of("uniform", [0.5, 0.5], [0.2, 0.3, 0.5]),
    "crossings": one_of(False, True, 0, 1),
    "min_effect": between(0.0, 0.5),
    "against": one_of("pairs", "rest"),
    "paired": one_of(None, True, False),
    "power": between(0.3, 0.9),
    "alpha": between(0.01, 0.2),
    "effect": one_of(None, 0.1, 0.3),
    "width": one_of(None, None, 0.2),
    "n": integer(5, 50),
    "grid": one_of(None, 3, 10),
    "levels": one_of([0.8, 0.95], 0.9, (0.5,)),
    "posteriors": one_of([0.8, 0.95], 0.9),
    "thresholds": one_of(None, 5, [0.1, 0.5]),
    "progress": one_of(None, unwatched),
}


def setting(name: str, rng: np.random.Generator, strange: float = 0.4) -> Any:
    """A value for a setting: an odd one in this share of draws."""
    if name not in PLAUSIBLE or rng.random() < strange:
        value = odd(rng)
        return unwatched if name == "progress" and callable(value) else value  # what it raises is the caller's own
    return PLAUSIBLE[name](rng)

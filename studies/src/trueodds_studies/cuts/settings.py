"""Which settings can be asked for without being wrong? Numbers of bins, ways to cut, norms; and those of the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Settings = Mapping[str, Any]

SCHEMES: Mapping[str, Callable[[int, int], Settings]] = {
    "uniform": lambda k, _: {"partition": "uniform", "bins": k},
    "uniform from 1/K": lambda k, _: {"partition": "uniform", "bins": k, "range": "1/K"},
    "equal-mass": lambda k, _: {"partition": "equal-mass", "bins": k},
    "mass": lambda k, n: {"partition": f"mass:{n // k}"},
    "median-variance": lambda k, n: {"partition": "median-variance", "min_size": n // k},
}
"""From a number of bins and of rows. The last two say how few rows a bin may hold, and make at most so many bins."""

FREE: Mapping[str, Settings] = {
    "sweep": {"partition": "sweep"},
    "equal-mass, √n bins": {"partition": "equal-mass", "bins": "sqrt"},
    "equal-mass, n^(2/5) bins": {"partition": "equal-mass", "bins": "auto"},
    "one bin per score": {"partition": "distinct"},
}
"""Without a number to choose; only the last is no setting in use."""

COUNTS = (2, 5, 10, 15, 20, 25, 30, 50, 75, 100, 150, 200, 300, 500, 1000)
REASONABLE = (5, 100)  # from the fewest in use to the paper's √n of 10,000 rows
NORMS = {"ECE": "ece", "root mean square": "rmsce", "worst bin": "mce"}

_BINS = tuple(k for k in COUNTS if REASONABLE[0] <= k <= REASONABLE[1])
OWN: Mapping[str, tuple[Settings, ...]] = {
    "ece": tuple(SCHEMES[scheme](k, 10_000) for scheme in ("uniform", "equal-mass") for k in _BINS),
    "rmsce": tuple(SCHEMES[scheme](k, 10_000) for scheme in ("uniform", "equal-mass") for k in _BINS),
    "mce": tuple(SCHEMES[scheme](k, 10_000) for scheme in ("uniform", "equal-mass") for k in _BINS),
    "sweep": tuple({"partition": base, "order": order} for base in ("equal-mass", "uniform") for order in (1.0, 2.0)),
    "ece_linear": tuple({"bins": k} for k in _BINS),
    "debiased_l2": tuple(SCHEMES[scheme](k, 10_000) for scheme in ("uniform", "equal-mass") for k in _BINS),
    "debiased_l1": tuple(SCHEMES[scheme](k, 10_000) for scheme in ("uniform", "equal-mass") for k in _BINS),
    "smece": ({}, *({"bandwidth": width} for width in (0.01, 0.02, 0.05, 0.1))),
    "ks": ({},),
    "ecce_r": ({},),
    "ici": tuple({"span": share} for share in (0.3, 0.5, 0.75, 1.0)),
    "ece_kde": ({}, {"kernel": "gaussian"}, {"kernel": "epanechnikov"}, *({"bandwidth": h} for h in (0.01, 0.02, 0.05))),
    "interval_ce": ({}, {"bandwidth": 0.01}, {"bandwidth": 0.05}),
    "laplace_kce": tuple({"bandwidth": width} for width in (0.5, 1.0, 2.0)),
    "mmce": tuple({"bandwidth": width} for width in (0.2, 0.4, 0.8)),
    "skce": tuple({"form": "unbiased", "bandwidth": width} for width in ("median", 0.1, 0.5, 1.0)),
    "cross_fitted": ({}, {"folds": 3}, {"folds": 10}),
}  # fmt: skip
"""Of each member the settings that its users argue about; the same orders of size for all that have a width."""


def described(settings: Settings) -> str:
    """Settings in words.

    >>> described({"partition": "equal-mass", "bins": 15}), described({})
    ('equal-mass 15', 'as it is')
    """
    plain = [str(settings[name]) for name in ("partition", "bins") if name in settings]
    named = [f"{name} {value}" for name, value in settings.items() if name not in ("partition", "bins")]
    return " ".join([*plain, *named]) or "as it is"

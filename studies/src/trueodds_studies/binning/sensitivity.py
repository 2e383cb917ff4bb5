"""Calibration errors of a network by number of bins, scheme and norm, and jumps of TACE along its threshold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from trueodds.api.measure import measure
from trueodds.core.errors import InputError
from trueodds.core.suggestions import suggest_names
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.lenses.lens_by_name import as_lens
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import noise_floor_draws
from trueodds_studies.common.data_files import hash_file, load_npz
from trueodds_studies.common.network_predictions import CIFAR10_FILES

Settings = Mapping[str, Any]

BINNING_SCHEMES: Mapping[str, Callable[[int, int], Settings]] = {
    "uniform": lambda k, _: {"partition": "uniform", "bins": k},
    "uniform from 1/K": lambda k, _: {"partition": "uniform", "bins": k, "range": "1/K"},
    "equal-mass": lambda k, _: {"partition": "equal-mass", "bins": k},
    "mass": lambda k, n: {"partition": f"mass:{n // k}"},
    "median-variance": lambda k, n: {"partition": "median-variance", "min_size": n // k},
}
"""By scheme: the settings for a number of bins and of rows. The last two specify a minimum number of rows per bin."""

ADAPTIVE_SETTINGS: Mapping[str, Settings] = {
    "sweep": {"partition": "sweep"},
    "equal-mass, √n bins": {"partition": "equal-mass", "bins": "sqrt"},
    "equal-mass, n^(2/5) bins": {"partition": "equal-mass", "bins": "auto"},
    "one bin per score": {"partition": "distinct"},
}
"""Schemes that choose the number of bins from the data; all except the last are in common use."""

BIN_COUNTS = (2, 5, 10, 15, 20, 25, 30, 50, 75, 100, 150, 200, 300, 500, 1000)
BIN_COUNT_RANGE = (5, 100)  # in common use: up to √n of 10,000 rows, as in Vennos, Xing & Franck (2026)
NORMS = {"ECE": "ece", "root mean square": "rmsce", "worst bin": "mce"}

_COUNTS_IN_RANGE = tuple(k for k in BIN_COUNTS if BIN_COUNT_RANGE[0] <= k <= BIN_COUNT_RANGE[1])
_UNIFORM_AND_EQUAL_MASS = tuple(
    BINNING_SCHEMES[scheme](k, 10_000) for scheme in ("uniform", "equal-mass") for k in _COUNTS_IN_RANGE
)
ESTIMATOR_SETTINGS: Mapping[str, tuple[Settings, ...]] = {
    "ece": _UNIFORM_AND_EQUAL_MASS,
    "rmsce": _UNIFORM_AND_EQUAL_MASS,
    "mce": _UNIFORM_AND_EQUAL_MASS,
    "sweep": tuple({"partition": base, "order": order} for base in ("equal-mass", "uniform") for order in (1.0, 2.0)),
    "ece_linear": tuple({"bins": k} for k in _COUNTS_IN_RANGE),
    "debiased_l2": _UNIFORM_AND_EQUAL_MASS,
    "debiased_l1": _UNIFORM_AND_EQUAL_MASS,
    "smece": ({}, *({"bandwidth": width} for width in (0.01, 0.02, 0.05, 0.1))),
    "ks": ({},),
    "ecce_r": ({},),
    "ici": tuple({"span": share} for share in (0.3, 0.5, 0.75, 1.0)),
    "ece_kde": (
        {},
        {"kernel": "gaussian"},
        {"kernel": "epanechnikov"},
        *({"bandwidth": h} for h in (0.01, 0.02, 0.05)),
    ),
    "interval_ce": ({}, {"bandwidth": 0.01}, {"bandwidth": 0.05}),
    "laplace_kce": tuple({"bandwidth": width} for width in (0.5, 1.0, 2.0)),
    "mmce": tuple({"bandwidth": width} for width in (0.2, 0.4, 0.8)),
    "skce": tuple({"form": "unbiased", "bandwidth": width} for width in ("median", 0.1, 0.5, 1.0)),
    "cross_fitted": ({}, {"folds": 3}, {"folds": 10}),
}
"""The settings of each estimator that are compared: those on which users disagree, such as bins or bandwidths."""


def describe_settings(settings: Settings) -> str:
    """Settings as text, partition and number of bins first.

    >>> describe_settings({"partition": "equal-mass", "bins": 15}), describe_settings({})
    ('equal-mass 15', 'default')
    """
    binning = [str(settings[name]) for name in ("partition", "bins") if name in settings]
    named = [f"{name} {value}" for name, value in settings.items() if name not in ("partition", "bins")]
    return " ".join([*binning, *named]) or "default"


LENS = "confidence"


def score_binnings(preds: Predictions, redraws: int, seed: int) -> list[dict[str, Any]]:
    """One row per scheme and number of bins: the error in every norm, and for ECE noise floor and occupied bins.

    `reasonable` tells whether the setting is in common use.
    """
    configurations: list[tuple[str, int | None, dict[str, Any]]] = [
        (scheme, k, dict(settings_of(k, preds.n)))
        for scheme, settings_of in BINNING_SCHEMES.items()
        for k in BIN_COUNTS
        if k < preds.n
    ]
    configurations += [(scheme, None, dict(settings)) for scheme, settings in ADAPTIVE_SETTINGS.items()]
    estimands = [
        Estimand.from_predictions(ESTIMATORS.make("ece", settings), as_lens(LENS), preds)
        for _, _, settings in configurations
    ]
    null_draws = noise_floor_draws(preds, estimands, np.random.default_rng([seed, 7]), redraws)
    rows = []
    for (scheme, k, settings), draws in zip(configurations, null_draws, strict=True):
        row: dict[str, Any] = {"scheme": scheme, "bins": k}
        for norm, name in NORMS.items():
            answer = measure(preds, name, lens=LENS, interval=None, **settings)
            row[norm] = answer.value
            if name == "ece":
                row["occupied"] = answer.settings["occupied_bins"]
                row["noise floor"] = None if draws is None else float(draws.mean())
        row["reasonable"] = (
            scheme != "one bin per score" if k is None else BIN_COUNT_RANGE[0] <= k <= BIN_COUNT_RANGE[1]
        )
        rows.append(row)
    return rows


def score_estimator_settings(preds: Predictions) -> list[dict[str, Any]]:
    """One row per estimator and settings of `ESTIMATOR_SETTINGS`, with the estimate."""
    return [
        {
            "estimator": name,
            "settings": describe_settings(settings),
            "value": float(_point_estimate(preds, name, settings)),
        }
        for name, variants in ESTIMATOR_SETTINGS.items()
        for settings in variants
    ]


def _point_estimate(preds: Predictions, name: str, settings: Any) -> float:
    return float(measure(preds, name, lens=LENS, interval=None, **settings))


THRESHOLD_RANGE = (1e-4, 0.9)  # of the grid


def tace_by_threshold(preds: Predictions, points: int) -> list[dict[str, Any]]:
    """TACE on a logarithmic grid of `points` thresholds; of fewer if there are more than ten classes."""
    grid = np.geomspace(*THRESHOLD_RANGE, max(10, round(points * min(1.0, 10 / preds.k))))
    return [{"threshold": float(low), "TACE": _tace(preds, float(low))[0]} for low in grid]


def largest_jump(preds: Predictions, grid: list[dict[str, Any]]) -> dict[str, Any]:
    """Locate a jump of TACE in the largest step of the grid by bisection, with the class that changes most.

    Each bisection keeps the half with the larger change of TACE, until at most one score lies between the thresholds.
    The result is a jump in that step, but not always the largest one.
    """
    steps = [abs(b["TACE"] - a["TACE"]) for a, b in pairwise(grid)]
    index = int(np.argmax(steps))
    low, high = grid[index]["threshold"], grid[index + 1]["threshold"]
    scores = np.sort(preds.P.astype(np.float64, copy=False), axis=None)

    def count_scores(a: float, b: float) -> int:
        """Number of predicted probabilities in (a, b]."""
        return int(np.searchsorted(scores, b, "right") - np.searchsorted(scores, a, "right"))

    error_before, by_class_before = _tace(preds, low)
    error_after, by_class_after = _tace(preds, high)
    while count_scores(low, high) > 1:
        middle = (low + high) / 2
        if middle in (low, high):
            break  # no number lies between
        error, by_class = _tace(preds, middle)
        if abs(error - error_before) >= abs(error_after - error):
            high, error_after, by_class_after = middle, error, by_class
        else:
            low, error_before, by_class_before = middle, error, by_class
    moves = {name: by_class_after[name] - by_class_before[name] for name in by_class_before}
    largest_move = max(moves, key=lambda name: abs(moves[name]))
    column = [str(name) for name in preds.classes].index(largest_move.removeprefix("class:"))
    counts = [int((preds.P[:, column].astype(np.float64, copy=False) > threshold).sum()) for threshold in (low, high)]
    return {
        "largest step": steps[index],
        "threshold": high,
        "scores passed": count_scores(low, high),
        "before": error_before,
        "after": error_after,
        "class": largest_move,
        "class before": by_class_before[largest_move],
        "class after": by_class_after[largest_move],
        "scores above before": counts[0],
        "scores above after": counts[1],
    }


def _tace(preds: Predictions, threshold: float) -> tuple[float, dict[str, float]]:
    """TACE, and its value for each class by name."""
    answer = measure(preds, "tace", lens="classwise", threshold=threshold, interval=None)
    return answer.value, dict(answer.parts)


@dataclass(frozen=True)
class StoredScores:
    """File of the predictions of a network, and the names of its arrays."""

    file: str
    key: str  # array of logits (if it begins with logits) or probabilities, (n, K)
    labels: str = "labels"  # array of class numbers, (n,)

    @property
    def has_logits(self) -> bool:
        """Whether the file holds logits."""
        return self.key.startswith("logits")


NETWORKS = {
    "cifar100 resnet110": StoredScores("aigen_cifar100_resnet110.npz", "logits_test", "labels_test"),
    "resnet50": StoredScores("aigen_cifar10_resnet50.npz", "logits_test", "labels_test"),
    **{name: StoredScores(*file_and_key) for name, file_and_key in CIFAR10_FILES.items()},
}
"""The first network has 100 classes, the others the ten classes of CIFAR-10."""
QUICK_NETWORKS = ("resnet50", "vgg16", "vgg16_bn")  # of a quick study


def check_network(name: str) -> str:
    """Return the name; an unknown network is an InputError."""
    if name not in NETWORKS:
        raise InputError("TO201", "There is no network of that name.", repr(name), suggest_names(name, NETWORKS))
    return name


def hash_network_files(nets: Sequence[str], data: str | None) -> dict[str, str]:
    """The SHA-256 hash of every file that these networks require."""
    return {name: hash_file(name, data) for name in dict.fromkeys(NETWORKS[net].file for net in nets)}


def load_predictions(net: str, data: str | None, rows: int | None = None, seed: int = 0) -> Predictions:
    """All rows of a network, or a random sample of `rows` of them, the same for every network."""
    preds = _load_predictions(net, data, hash_file(NETWORKS[net].file, data))
    if rows is None or rows >= preds.n:
        return preds
    return preds[np.sort(np.random.default_rng([seed, rows]).choice(preds.n, rows, replace=False))]


@lru_cache(maxsize=len(NETWORKS))
def _load_predictions(net: str, data: str | None, _file_hash: str) -> Predictions:
    """Cached by the hash of the file."""
    network = NETWORKS[net]
    stored = load_npz(network.file, data, network.labels, network.key)
    labels = stored[network.labels].astype(np.int64)
    scores = stored[network.key]
    return Predictions.from_logits(labels, scores) if network.has_logits else Predictions(labels, scores)

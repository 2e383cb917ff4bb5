"""Rankings of networks by measures of calibration, on all rows and on random halves, and p-values on subsamples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from trueodds.api.compare import compare
from trueodds.api.measure import measure
from trueodds.api.test import test
from trueodds.core.errors import InputError
from trueodds.core.suggestions import suggest_names
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds_studies.common.data_files import hash_file
from trueodds_studies.common.network_predictions import CIFAR10_NETWORKS, groups_lens, sample_predictions
from trueodds_studies.networks import network_errors

Models = Mapping[str, Predictions]  # predictions by name of the network, for the same rows


@dataclass(frozen=True)
class Measure:
    """An estimator with its lens and settings, and its kind.

    `raw` errors are biased upward by noise, `corrected` ones hardly or not, and a `score` is a proper scoring rule,
    which measures more than calibration.
    """

    kind: str
    name: str
    lens: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def estimate(self, preds: Predictions) -> float:
        """The value of the measure."""
        return float(measure(preds, self.name, lens=self.lens, interval=None, **self.settings))


TREE_SETTINGS = {"partition": "median-variance", "min_size": 10}
MEASURES = {
    "ECE, 15 bins": Measure("raw", "ece", "confidence", {"bins": 15}),
    "ECE, 100 bins": Measure("raw", "ece", "confidence", {"bins": 100}),
    "ECE, equal mass": Measure("raw", "ece", "confidence", {"partition": "equal-mass"}),
    "ECE, tree": Measure("raw", "ece", "confidence", TREE_SETTINGS),
    "MCE, 15 bins": Measure("raw", "mce", "confidence", {"bins": 15}),
    "class-wise, 15 bins": Measure("raw", "ece", "classwise", {"bins": 15}),
    "3 groups, tree": Measure("raw", "ece", groups_lens(10), TREE_SETTINGS),
    "canonical, grid": Measure("raw", "ece", "canonical", {"partition": "uniform", "bins": 10}),
    "canonical, tree": Measure("raw", "ece", "canonical", TREE_SETTINGS),
    "canonical, tree, squared": Measure("raw", "ece", "canonical", {**TREE_SETTINGS, "distance": "sq-euclidean"}),
    "debiased L2": Measure("corrected", "debiased_l2", "confidence"),
    "debiased L2, class-wise": Measure("corrected", "debiased_l2", "classwise"),
    "smooth ECE": Measure("corrected", "smece", "confidence"),
    "KS": Measure("corrected", "ks", "confidence"),
    # Blocks of 100 rows also in halves of the rows.
    "SKCE, blocks": Measure("corrected", "skce", "canonical", {"form": "block", "block_size": 100}),
    "Brier": Measure("score", "brier", "canonical"),
    "log loss": Measure("score", "log_loss", "canonical"),
    "spherical": Measure("score", "spherical", "canonical"),
}
DEFAULT_MEASURE = "ECE, 15 bins"  # the most common one in papers
QUICK_MEASURES = (DEFAULT_MEASURE, "canonical, tree", "debiased L2", "Brier")  # of a quick study


def load_models(
    names: tuple[str, ...], data: str | None, rows: int | None = None, seed: int = 0
) -> dict[str, Predictions]:
    """The predictions of the networks for all rows, or for the same random sample. Raises TO803 if labels differ."""
    nets = {name: CIFAR10_NETWORKS[name].predictions(data) for name in names}
    first, *others = nets
    expected = nets[first].y
    assert expected is not None  # the rows have labels, not votes
    for name in others:
        labels = nets[name].y
        assert labels is not None
        if len(labels) != len(expected) or (labels != expected).any():
            differ = (
                f"{int((labels != expected).sum()):,} of {len(labels):,}"
                if len(labels) == len(expected)
                else f"{len(labels):,} rows:"
            )
            raise InputError(
                "TO803",
                "The networks were not evaluated on the same rows.",
                f"{differ} labels of {CIFAR10_NETWORKS[name].file} differ from those of {CIFAR10_NETWORKS[first].file}",
                "All must have the same items in the same order; docs/studies.md says which.",
            )
    return {name: sample_predictions(preds, rows, seed) for name, preds in nets.items()}


def hash_model_files(names: tuple[str, ...], data: str | None) -> dict[str, str]:
    """The files of the networks with their SHA-256 hashes."""
    return {name: hash_file(name, data) for name in dict.fromkeys(CIFAR10_NETWORKS[net].file for net in names)}


def check_models(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names without duplicates; raise an InputError for an unknown network, or for fewer than two."""
    for name in names:
        if name not in CIFAR10_NETWORKS:
            raise InputError(
                "TO201", "There is no network of that name.", repr(name), suggest_names(name, CIFAR10_NETWORKS)
            )
    if len(set(names)) < 2:
        raise InputError("TO205", "A comparison needs two models.", ", ".join(names), "Name a second network.")
    return tuple(dict.fromkeys(names))


def accuracies(nets: Models) -> dict[str, dict[str, float]]:
    """By network: `accuracy` and mean `confidence`."""
    scores = {}
    for name, preds in nets.items():
        accuracy, confidence = network_errors.accuracy_and_confidence(preds)
        scores[name] = {"accuracy": accuracy, "confidence": confidence}
    return scores


def rank_models(measure_name: str, nets: Models, draws: int, resamples: int, seed: int) -> dict[str, Any]:
    """Values of a measure for every network, differences of all pairs, and values in random halves of the rows.

    `settled` tells whether the order of a pair is established by simultaneous 95 % intervals.
    """
    measure_used = MEASURES[measure_name]
    comparison = compare(
        dict(nets), measure_used.name, lens=measure_used.lens, resamples=resamples, rng=seed, **measure_used.settings
    )
    settled = {frozenset(pair) for pair in comparison.settled}
    models = []
    for name, result in comparison.models.items():
        row: dict[str, Any] = {"net": name, "value": result.value, "noise floor": result.noise_floor}
        row |= {"low": None, "high": None}
        if result.interval is not None:
            row |= {"low": result.interval.low, "high": result.interval.high}
        models.append(row)
    pairs = []
    for result in comparison.pairs:
        interval = result.interval
        pairs.append(
            {
                "pair": list(result.names),
                "difference": result.difference,
                "low": None if interval is None else interval.low,
                "high": None if interval is None else interval.high,
                "settled": frozenset(result.names) in settled,
            }
        )
    return {
        "measure": measure_name,
        "n": comparison.n,
        "models": models,
        "pairs": pairs,
        "halves": values_in_halves(measure_used, nets, draws, seed).tolist(),
    }


def values_in_halves(measure_used: Measure, nets: Models, draws: int, seed: int) -> Array:
    """A measure of every network in random halves of the rows, (draws, models), with the same halves for all.

    A mean over half of the rows, drawn without replacement, varies around the mean over all rows as the mean of a new
    test set of the complete size varies around the true value. No row is duplicated, unlike in a bootstrap, where
    duplicates bias a debiased square.
    """
    n = next(iter(nets.values())).n
    values = []
    for number in range(draws):
        rows = draw_half(n, seed, number)
        values.append([measure_used.estimate(preds[rows]) for preds in nets.values()])
    return np.array(values)


def draw_half(n: int, seed: int, number: int) -> Array:
    """Numbers of a random half of n rows, in increasing order.

    >>> len(draw_half(10, 0, 0)), draw_half(10, 0, 0).tolist() == draw_half(10, 0, 0).tolist()
    (5, True)
    """
    return np.sort(np.random.default_rng([seed, 2, number]).choice(n, n // 2, replace=False))


def pair_signs(values: Array) -> Array:
    """The signs of the differences of values (…, models) for all pairs of models, (…, pairs).

    Pairs have the order of `itertools.combinations`, and differences are the first minus the second.
    """
    first, second = np.array(list(combinations(range(values.shape[-1]), 2))).T
    return np.sign(values[..., first] - values[..., second])


def kendall_tau(a: Array, b: Array) -> Array:
    """Kendall's tau of rankings by values (…, models): share of concordant minus share of discordant pairs, (…,).

    >>> float(kendall_tau(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0])).round(3))
    0.333
    """
    return np.asarray((pair_signs(a) * pair_signs(b)).mean(axis=-1))


def reversal_rates(all_rows: Array, halves: Array) -> Array:
    """How often each pair is ordered differently by all rows (models,) and halves (draws, models), (pairs,)."""
    return np.asarray((pair_signs(halves) != pair_signs(all_rows)).mean(axis=0))


ALPHA = 0.05  # the level of the tests
SUBSAMPLE_SIZES = (100, 250, 500, 1000, 2500)  # numbers of rows at which p-values are compared


def draw_pvalues(n: int, nets: Models, draws: int, redraws: int, seed: int) -> dict[str, Any]:
    """The default error and its p-value for every network in random sets of n rows, the same rows for all.

    Errors and p-values have the shape (draws, models); there is one draw if n is the number of all rows.
    """
    measure_used = MEASURES[DEFAULT_MEASURE]
    total = next(iter(nets.values())).n
    errors, pvalues = [], []
    for number in range(1 if n >= total else draws):
        rows = np.sort(np.random.default_rng([seed, 3, n, number]).choice(total, min(n, total), replace=False))
        verdicts = [
            test(
                preds[rows],
                "consistency",
                lens=measure_used.lens,
                statistic=measure_used.name,
                resamples=redraws,
                rng=number,
                **measure_used.settings,
            )
            for preds in nets.values()
        ]
        errors.append([verdict.statistic for verdict in verdicts])
        pvalues.append([verdict.pvalue for verdict in verdicts])
    return {"n": min(n, total), "nets": list(nets), "redraws": redraws, "errors": errors, "pvalues": pvalues}


def reversed_pairs(errors: Array, pvalues: Array, level: float = ALPHA) -> Array:
    """Whether model i has a larger error than model j but i is not rejected and j is, (…, i, j).

    `errors` and `pvalues` have the shape (…, models).

    >>> reversed_pairs(np.array([[0.2, 0.1]]), np.array([[0.3, 0.01]])).tolist()
    [[[False, True], [False, False]]]
    """
    larger = errors[..., :, None] > errors[..., None, :]
    rejected = pvalues <= level
    return np.asarray(larger & ~rejected[..., :, None] & rejected[..., None, :])

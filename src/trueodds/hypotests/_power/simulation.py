"""Simulated power: data sets whose true probabilities are distorted predictions, and the share that a test rejects."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from scipy.special import expit, logit

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError
from trueodds.core.settings import Settings
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import log_probabilities
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import aggregate_values, aggregation_weights
from trueodds.hypotests.base import HypothesisTest
from trueodds.hypotests.multiple_testing import LEVEL_TOLERANCE, check_draws
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Positive
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import null_draws

DistortionKind = Literal["temperature", "shift"]
DistortionDirection = Literal["over", "under"]
ONE_ROW_REMEDY = "⟨Use one row per cluster: preds[np.unique(preds.cluster, return_index=True)[1]]⟩."
MAX_DISTORTION = 20.0  # at this size true probabilities are practically equal (over) or 0 and 1 (under)


@dataclass(frozen=True)
class Distortion(Settings):
    r"""True probabilities r that deviate from the predicted ones p by a distortion of size x ≥ 0.

    .. math:: r \propto p^{t}, \quad t = e^{-x} \text{ (over)}, \; e^{x} \text{ (under)}

    is the `temperature` distortion: the predictions are overconfident (`over`) or underconfident (`under`). A `shift`
    lowers (`over`) or raises (`under`) by x the log odds of the second of two classes, of the most probable of several
    classes, or of each label of a multilabel problem.

    >>> preds = Predictions([0, 1], [0.2, 0.9])
    >>> Distortion("shift").true_probabilities(preds, 1.0)[:, 1].round(3).tolist()
    [0.084, 0.768]
    """

    kind: DistortionKind = "temperature"  # what is distorted: all log odds, or those of one class
    direction: DistortionDirection = "over"  # whether the predictions are too extreme (or too high), or the opposite

    def true_probabilities(self, preds: Predictions, x: float) -> Array:
        """True probabilities r, (n, K): of every class, or of every independent label."""
        sign = -1.0 if self.direction == "over" else 1.0
        if preds.kind == "multilabel":
            z = logit(preds.P.astype(np.float64))
            return np.asarray(expit(z + sign * x if self.kind == "shift" else z * np.exp(sign * x)))
        z = log_probabilities(preds)
        if self.kind == "shift":
            shifted_class = np.argmax(z, axis=1) if preds.k > 2 else 1
            z[np.arange(len(z)), shifted_class] += sign * x
        else:
            z *= np.exp(sign * x)
        r = np.exp(z - z.max(axis=1, keepdims=True))
        return np.asarray(r / r.sum(axis=1, keepdims=True))

    def n_certain(self, preds: Predictions) -> int:
        """Number of rows with predicted probabilities of exactly 0 and 1, which no distortion changes."""
        if preds.kind == "multilabel":
            return int(((preds.P == 0) | (preds.P == 1)).all(axis=1).sum())
        return int((np.isneginf(log_probabilities(preds)).sum(axis=1) == preds.k - 1).sum())


class Population:
    """The user's rows as the population from which data sets are drawn, with distorted true probabilities.

    Attributes
    ----------
    views : tuple of View
        The rows through the lens.
    is_single_score : bool
        Whether the hypothesis concerns one score per row. Samples then contain this score only, which saves time.
    sample_lens : Lens
        The lens of the samples: the original one, or one that presents the single score under its name.
    """

    def __init__(self, preds: Predictions, lens: Lens, distortion: Distortion) -> None:
        if preds.cluster is not None:
            raise InputError(
                "TO205",
                "Power simulations assume independent rows, and these rows are clustered.",
                "⟨cluster=⟩",
                f"{ONE_ROW_REMEDY} For the width of an interval pass width, which accounts for clusters.",
            )
        self.preds, self.lens, self.distortion, self.n_rows = preds, lens, distortion, preds.n
        placeholder_labels = np.zeros(preds.P.shape if preds.kind == "multilabel" else preds.n, dtype=np.int64)
        self._sampled_preds = preds.with_labels(placeholder_labels) if preds.y is None else preds
        self.views = lens.views(self._sampled_preds)
        self.is_single_score = len(self.views) == 1 and not self.views[0].joint and preds.kind != "multilabel"
        self.sample_lens: Lens = lens
        if self.is_single_score:
            (view,) = self.views
            self.sample_lens = ScoreLens(lens, view.name, view.classes)
            self._sampled_preds = Predictions(placeholder_labels, view.p, weight=preds.weight, copy=False)

    def true_probabilities(self, x: float) -> Array:
        """True probabilities at distortion x: of the single event (n,), or of every class (n, K)."""
        P = self.distortion.true_probabilities(self.preds, x)
        return self.view_probabilities(P)[0] if self.is_single_score else P

    def view_probabilities(self, P: Array) -> list[Array]:
        """True probabilities of each view, (n,) or (n, m), from those P of all classes, (n, K)."""
        if self.preds.kind == "multilabel":
            return [P[:, c] for c in self.lens.class_columns(self._sampled_preds)]
        widths = [view.p.shape[1] if view.joint else 1 for view in self.views]
        return [codes.outcome_shares(P, m) for codes, m in zip(self._outcome_codes, widths, strict=True)]

    @cached_property
    def _outcome_codes(self) -> list[Any]:
        """How the lens maps classes to the outcomes of each view."""
        return self.lens.outcome_codes(self.preds)

    def effect(self, x: float) -> float:
        """Effect of distortion x: the mean of |r − p| through the lens, in probability units.

        For vectors it is the mean total variation distance. Several views are combined as the lens does.
        """
        effects = []
        probabilities = self.view_probabilities(self.distortion.true_probabilities(self.preds, x))
        for view, r in zip(self.views, probabilities, strict=True):
            gap = np.abs(r - view.p)
            effects.append(float(weighted_sum(view.w, gap.sum(axis=1) / 2 if view.joint else gap)) / view.total)
        if len(self.views) == 1:
            return effects[0]
        weights = aggregation_weights(self.views, self.lens.aggregate)
        return float(aggregate_values(np.array(effects), weights, self.lens.aggregate))

    @cached_property
    def max_effect(self) -> float:
        """The effect of the strongest distortion."""
        return self.effect(MAX_DISTORTION)

    def sample(self, truth: Array, n: int, seeds: tuple[int, int]) -> Predictions:
        """Draw n rows with replacement, and their labels from `truth`, the result of `true_probabilities`.

        `seeds` identify the data set. Equal seeds give the same rows and the same uniform numbers for every `truth`, so
        that the labels of two distortions differ in few rows (common random numbers).
        """
        drawn_rows = np.random.default_rng([*seeds, 0]).integers(0, self.n_rows, n)
        label_rng = np.random.default_rng([*seeds, 1])
        sampled = self._sampled_preds[drawn_rows]
        if self.is_single_score:
            return sampled.with_labels(label_rng.random(n) < truth[drawn_rows])
        if self.preds.kind == "multilabel":
            return sampled.with_labels(label_rng.random((n, truth.shape[1])) < truth[drawn_rows])
        labels = (np.cumsum(truth[drawn_rows], axis=1) <= label_rng.random(n)[:, None]).sum(axis=1)
        return sampled.with_labels(np.minimum(labels, truth.shape[1] - 1))


@dataclass(frozen=True, eq=False)
class ScoreLens(Positive):
    """Lens on predictions that consist of the single score of another lens, under the name of that lens."""

    lens: Lens  # the original lens
    view_name: str  # name of its view
    n_classes: int  # number of classes of the original problem

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the original lens."""
        return str(self.lens)

    def views(self, preds: Predictions) -> tuple[View, ...]:
        """The score against the outcome."""
        (view,) = super().views(preds)
        view.name, view.classes = self.view_name, self.n_classes
        return (view,)


MAX_LABELS_OF_DRAWS = 2**28  # total number of redrawn labels up to which every data set has its own null draws
MAX_STORED_NULL_DRAWS = 2**25  # total number of null draws in memory
N_POOLED_NULL_DRAWS = 4000  # total number of null draws if the data sets share them


class SimulatedPower:
    """Simulated power of a test at n rows, with common random numbers for all distortions.

    Null draws depend on the predictions of a data set only, so they are reused for every distortion. If they would be
    too many (n in the thousands), a few are made per data set and pooled over all data sets, whose null distributions
    then hardly differ.

    Parameters
    ----------
    test : HypothesisTest
        The test whose rejections are counted.
    population : Population
        The rows from which the data sets are drawn.
    n : int
        Number of rows of each data set.
    alpha : float
        Level of the test.
    n_data_sets : int
        Number of data sets.
    seed : int
        Seed of the data sets and of the null draws.
    progress : callable, optional
        Receives the finished share of the data sets of one distortion.
    """

    def __init__(
        self,
        test: HypothesisTest,
        population: Population,
        n: int,
        alpha: float,
        n_data_sets: int,
        seed: int,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self.test, self.population, self.n, self.alpha, self.n_data_sets = test, population, n, alpha, n_data_sets
        self.seed, self.progress = seed, progress
        self._undistorted_truth = population.true_probabilities(0.0)
        self._null_draws_by_data_set: dict[int, Array] = {}
        # By data set and hash of its labels, which similar distortions often share, in particular for few rows.
        self._pvalues: dict[tuple[int, bytes], float] = {}
        first_sample = self._sample_data_set(self._undistorted_truth, 0)
        # Raises InputError for unsuitable data.
        verdict = test(first_sample, [population.sample_lens], np.random.default_rng(seed))
        n_hypotheses = len(population.views) if population.preds.kind == "multilabel" else 1  # of Holm's correction
        if verdict.min_pvalue is not None:
            check_draws(verdict.settings["resamples"], alpha, n_hypotheses)
        self.redraws_labels = test.estimand(first_sample, population.sample_lens) is not None
        self.n_null_draws = getattr(test, "resamples", 0) if self.redraws_labels else 0
        n_draws = n_data_sets * self.n_null_draws * len(population.views)
        self.pools_draws = self.redraws_labels and (
            n_data_sets * n * self.n_null_draws > MAX_LABELS_OF_DRAWS or n_draws > MAX_STORED_NULL_DRAWS
        )
        if self.pools_draws:
            self.n_null_draws = max(3, math.ceil(N_POOLED_NULL_DRAWS / n_data_sets))

    def rejection_rate(self, x: float, n_data_sets: int | None = None) -> float:
        """Share of the first `n_data_sets` data sets that the test rejects at distortion x."""
        n_data_sets = self.n_data_sets if n_data_sets is None else min(n_data_sets, self.n_data_sets)
        truth, n_rejected = self.population.true_probabilities(x), 0
        for number in range(n_data_sets):
            sample = self._sample_data_set(truth, number)
            assert sample.y is not None
            key = number, blake2b(sample.y.tobytes(), digest_size=16).digest()
            if key not in self._pvalues:
                self._pvalues[key] = self._data_set_pvalue(number, sample)
            if self._pvalues[key] <= self.alpha + LEVEL_TOLERANCE:  # false for an undefined p-value (NaN)
                n_rejected += 1
            if self.progress:
                self.progress((number + 1) / n_data_sets)
        return n_rejected / n_data_sets

    @property
    def settings_used(self) -> dict[str, Any]:
        """Number of null draws, and whether they are pooled; empty if the test does not redraw labels."""
        if not self.redraws_labels:
            return {}
        return {
            "null_draws": self.n_data_sets * self.n_null_draws if self.pools_draws else self.n_null_draws,
            "pooled": self.pools_draws,
        }

    def _sample_data_set(self, truth: Array, number: int) -> Predictions:
        return self.population.sample(truth, self.n, (self.seed, number))

    def _data_set_pvalue(self, number: int, sample: Predictions) -> float:
        lens = self.population.sample_lens
        estimand = self.test.estimand(sample, lens)
        if estimand is None:
            return self.test(sample, [lens], np.random.default_rng([self.seed, number, 2])).pvalue
        if self.pools_draws:
            draws = self._pooled_null_draws
        elif number in self._null_draws_by_data_set:
            draws = self._null_draws_by_data_set[number]
        else:
            draws = self._make_null_draws(number, sample, estimand)
            self._null_draws_by_data_set[number] = draws
        return self.test.pvalue_from_draws(estimand, draws, joint=sample.kind != "multilabel")

    def _make_null_draws(self, number: int, sample: Predictions, estimand: Estimand) -> Array:
        """Null draws (views, draws) of the data set of this number, which do not depend on its labels."""
        rng, redraw = np.random.default_rng([self.seed, number, 2]), getattr(self.test, "redraw", "labels")
        (draws,) = null_draws(sample, [estimand], self.n_null_draws, rng, redraw=redraw)
        return draws

    @cached_property
    def _pooled_null_draws(self) -> Array:
        """Null draws pooled over all data sets, (views, n_data_sets · draws)."""
        draws = []
        for number in range(self.n_data_sets):
            sample = self._sample_data_set(self._undistorted_truth, number)
            estimand = self.test.estimand(sample, self.population.sample_lens)
            assert estimand is not None
            draws.append(self._make_null_draws(number, sample, estimand))
        return np.concatenate(draws, axis=1)

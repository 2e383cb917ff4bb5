"""Summarize the calibration of held-out predictions after an epoch: error, noise floor, p-value and refinement.

A callback of a training library derives from `EpochCallback` and passes the rows to its `EpochSummarizer`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.api.arguments import resolve_method
from trueodds.api.fit import fit
from trueodds.api.measure import measure
from trueodds.api.test import test as test_calibration
from trueodds.calibrators.temperature import TemperatureMap, format_temperature
from trueodds.core.errors import Note
from trueodds.core.formatting import format_number, format_pvalue_relation
from trueodds.core.printable import to_printable
from trueodds.core.results import noise_floor_label
from trueodds.core.settings import Count, Seed, check
from trueodds.core.signatures import checks_arguments
from trueodds.data.log_probabilities import log_probabilities, log_sum_exp
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.integrations.row_collector import RowCollector
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.ranked import accuracy

logger = logging.getLogger(__name__)

RESAMPLES = 199  # null draws of the test, by default; the smallest p-value is 0.005
# Fields of a summary that are numbers, in the order in which loggers get them. The docstrings of callbacks name them.
_LOGGED_FIELDS = ("n", "accuracy", "log_loss", "error", "noise_floor", "pvalue", "temperature", "refinement")


@dataclass(frozen=True)
class EpochSummary:
    """Calibration of the held-out predictions after an epoch; `str` is one line.

    Attributes
    ----------
    n : int
        Number of rows.
    accuracy : float
        Share of correct predicted classes.
    log_loss : float
        Log loss (cross-entropy) of the predictions.
    error : float
        Value of the estimator, by default ECE.
    noise_floor : float or None
        Mean value of the estimator if the model were calibrated; None if it is not defined.
    pvalue : float
        p-value of the hypothesis that the predictions are calibrated.
    temperature : float
        Temperature that fits these rows: above 1 the model is overconfident, below 1 underconfident.
    refinement : float
        Log loss at that temperature, which does not depend on how over- or underconfident the model is.
    estimator, lens, test : str
        How `error` and `pvalue` were computed.
    min_pvalue : float or None
        Smallest p-value that the null draws can give.
    notes : tuple of Note
        Facts to report with the values.
    """

    n: int
    accuracy: float
    log_loss: float
    error: float
    noise_floor: float | None
    pvalue: float
    temperature: float
    refinement: float
    estimator: str
    lens: str
    test: str
    min_pvalue: float | None = None
    notes: tuple[Note, ...] = ()

    def __str__(self) -> str:
        error = f"{self.estimator} {format_number(self.error)}"
        if self.noise_floor is not None:
            error += f" ({noise_floor_label(self.estimator)} {format_number(self.noise_floor)})"
        pvalue = format_pvalue_relation(self.pvalue, self.min_pvalue, cutoff=0)
        return to_printable(
            f"accuracy {format_number(self.accuracy)} · log loss {format_number(self.log_loss)}"
            f" ({format_number(self.refinement)} at {format_temperature(1 / self.temperature)}) · {error} ·"
            f" {self.test} p {pvalue} · n={self.n:,} · {self.lens}"
        )

    def to_dict(self, prefix: str = "") -> dict[str, float]:
        """Return the values as numbers by name, for loggers.

        Parameters
        ----------
        prefix : str, default=""
            Beginning of every name, such as ``"calibration/"``.

        Returns
        -------
        dict of str to float
            The values `n` to `refinement`; without `noise_floor` if it is None.
        """
        values = {name: getattr(self, name) for name in _LOGGED_FIELDS}
        return {f"{prefix}{name}": float(value) for name, value in values.items() if value is not None}


@checks_arguments
def summarize_epoch(
    preds: Predictions,
    *,
    estimator: str | Estimator = "ece",
    lens: Any = None,
    test: Any = "consistency",
    resamples: int = RESAMPLES,
    rng: int | np.random.Generator = 0,
) -> EpochSummary:
    r"""Summarize the calibration of held-out predictions, as the callbacks do after every epoch.

    Parameters
    ----------
    preds : Predictions
        Held-out predictions of exclusive classes.
    estimator : str or Estimator, default="ece"
        Name of an estimator, or an instance with its settings.
    lens : str, Lens or callable, optional
        Which predicted probability is examined, as in `measure`.
    test : str or HypothesisTest, default="consistency"
        Name of a test, or an instance. ``"consistency"`` tests the value of the estimator.
    resamples : int, default=199
        Number of null draws of a test that is given by name, and of bootstrap resamples of the error.
    rng : int or numpy.random.Generator, default=0
        Seed or random generator.

    Returns
    -------
    EpochSummary
        Error, noise floor, p-value, temperature and refinement.

    Raises
    ------
    InputError
        TO203 for anything but Predictions, TO502 for independent labels, and as for `measure`, `test` and `fit`.

    Notes
    -----
    The log loss is the sum of a calibration error and a refinement error, the loss that remains after recalibration.
    They reach their minima in different epochs. A model that is recalibrated afterwards should be selected by the
    refinement error [1]_. Its estimate is the log loss after temperature scaling on the same rows:

    .. math:: \min_{T > 0} -\frac{1}{n} \sum_i \log \operatorname{softmax}(\log p_i / T)_{y_i}

    One parameter is fitted, so that the estimate is too low by about :math:`1/(2n)`.

    The p-value tests a single epoch. The smallest of many epochs is small even if all are calibrated.

    References
    ----------
    .. [1] Berta et al. (2025), Rethinking early stopping: Refine, then calibrate, arXiv:2501.19195.

    Examples
    --------
    >>> import trueodds as to
    >>> preds = to.Predictions([1, 1, 1, 0] * 25, [0.9, 0.9, 0.9, 0.9] * 25)
    >>> print(summarize_epoch(preds, resamples=99))
    accuracy 0.75 · log loss 0.6547 (0.5623 at T = 2.00) · ece 0.15 (noise floor 0.0238) · consistency p ≤ 0.01 · n=100 · positive
    """  # noqa: E501 - the line that is printed
    check("preds", preds, Predictions)
    resamples = check("resamples", resamples, Count, RESAMPLES)
    calibrator = fit(preds, "temperature", weight_kind="importance")  # first, because it refuses independent labels
    estimate = measure(preds, estimator, lens=lens, resamples=resamples, weight_kind="importance", rng=rng)
    settings: dict[str, Any] = {"weight_kind": "importance"}
    settings |= {"resamples": resamples} if isinstance(test, str) else {}
    if isinstance(test, str) and test == "consistency":
        settings["statistic"] = estimator
    verdict = test_calibration(preds, test, lens=lens, rng=rng, progress=False, **settings)
    temperature_map = calibrator.calibration_map
    assert isinstance(temperature_map, TemperatureMap)
    notes = dict.fromkeys([*estimate.notes, *calibrator.notes, *verdict.notes])
    return EpochSummary(
        n=preds.n,
        accuracy=accuracy(preds),
        log_loss=measure(preds, "log_loss", interval=None, weight_kind="importance").value,
        error=estimate.value,
        noise_floor=estimate.noise_floor,
        pvalue=verdict.pvalue,
        temperature=1 / temperature_map.beta,
        refinement=_scaled_log_loss(preds, temperature_map.beta),
        estimator=estimate.estimator,
        lens=estimate.lens,
        test=verdict.test,
        min_pvalue=verdict.min_pvalue,
        notes=tuple(notes),
    )


def _scaled_log_loss(preds: Predictions, beta: float) -> float:
    """Return the log loss of probabilities ∝ p^β with β = 1/T, from logarithms, so that no power underflows."""
    logs = beta * log_probabilities(preds)
    if preds.votes is not None:
        observed = (preds.votes * np.where(preds.votes > 0, logs, 0.0)).sum(axis=1)
    else:
        observed = logs[np.arange(preds.n), preds.y]
    losses = np.where(preds.w > 0, log_sum_exp(logs) - observed, 0.0)  # a row that does not count may have p = 0
    return float(np.average(losses, weights=preds.weight))


class EpochSummarizer:
    """Collects the rows of an epoch for a callback, summarizes them, and logs the summary.

    Its settings, those of the callbacks, are checked when it is created, before training.
    """

    def __init__(
        self,
        logits: bool,
        estimator: str | Estimator,
        lens: Any,
        prefix: str,
        *,
        every: int = 1,
        sum_tolerance: float | None = None,
        ignore_index: int | None = None,
        rng: int = 0,
    ) -> None:
        resolve_method(ESTIMATORS, Estimator, estimator, {})
        if lens is not None:
            as_lens(lens)
        self.estimator, self.lens = estimator, lens
        self.prefix = check("prefix", prefix, str)
        self.every = check("every", every, Count, 1)
        self.rng = check("rng", rng, Seed, 0)
        self._collector_settings: dict[str, Any] = {
            "logits": logits,
            "sum_tolerance": sum_tolerance,
            "ignore_index": ignore_index,
        }
        self.latest: EpochSummary | None = None  # the summary of the last epoch
        self._logged_note_codes: set[str] = set()
        self.make_collector()  # raises an error for invalid settings

    def make_collector(self, shard: int = 0) -> RowCollector:
        """Return an empty collector for the rows of an epoch, in the process of this number."""
        return RowCollector(**self._collector_settings, seed=self.rng, shard=shard)

    def is_due(self, epoch: int) -> bool:
        """Return whether an epoch, counted from 0, is summarized."""
        return epoch % self.every == 0

    def summarize(self, collector: RowCollector) -> dict[str, float]:
        """Summarize the collected rows, and return the values to log by name, with the prefix.

        The summary is logged at level INFO. Notes on the data are logged once as warnings.
        """
        preds = collector.predictions()
        self.latest = summarize_epoch(preds, estimator=self.estimator, lens=self.lens, rng=self.rng)
        logger.info("%s", self.latest)
        for note in preds.notes:
            if note.code not in self._logged_note_codes:
                self._logged_note_codes.add(note.code)
                logger.warning("%s", note)
        return self.latest.to_dict(self.prefix)


class EpochCallback:
    """Base class of the callbacks: what users of each of them see alike.

    Parameters
    ----------
    estimator : str or Estimator, default="ece"
        Name of an estimator, or an instance with its settings.
    lens : str, Lens or callable, optional
        Which predicted probability is examined, as in `measure`.
    sum_tolerance : float, optional
        Largest deviation of the sum of a row of probabilities from 1, as for `Predictions`.
    rng : int, default=0
        Seed of the null draws, and of the sample if there are more than 20 million probabilities.
    """

    _summarizer: EpochSummarizer

    def summary(self) -> EpochSummary | None:
        """Return the latest summary, with notes.

        Returns
        -------
        EpochSummary or None
            The summary, whose `str` is one line; None before the first one.
        """
        return self._summarizer.latest

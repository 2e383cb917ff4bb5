"""Collect the predictions of an epoch batch by batch, and summarize their calibration: error, p-value, refinement.

A callback of a training library derives from `EpochCallback` and passes the rows to its `EpochSummarizer`.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from trueodds.api.arguments import resolve_method
from trueodds.api.fit import fit
from trueodds.api.measure import measure
from trueodds.api.test import test as test_calibration
from trueodds.calibrators.temperature import TemperatureMap, format_temperature
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number, format_percent_in_text, format_pvalue_relation
from trueodds.core.printable import to_printable
from trueodds.core.results import noise_floor_label
from trueodds.core.settings import Count, Integer, NonNegative, Seed, check
from trueodds.core.signatures import checks_arguments
from trueodds.core.typing import Array
from trueodds.data import arrays
from trueodds.data.log_probabilities import log_probabilities, log_sum_exp
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import SUM_TOLERANCE_OF_DTYPE
from trueodds.data.remedies import restate_own_arguments
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.ranked import accuracy
from trueodds.tallies.reservoir import hash_row_ids

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


MAX_PROBS = 20_000_000  # maximum number of probabilities that are kept, by default
SHARD_ID_BITS = 48  # bits of the number of a row within its process; the number of the process is in those above
# Remedy in errors of `Predictions` for other class labels than 0 to K − 1, which callbacks do not offer.
_CLASSES_REMEDY = re.compile(r"(; if they are other codes|, or) pass classes=[^.]*")


class CollectedRows(NamedTuple):
    """Scores, labels and sampling keys of rows, as arrays."""

    scores: Array  # (n,) or (n, K)
    labels: Array  # (n,) or (n, K)
    keys: Array  # (n,) uint64; rows with the smallest keys are a random sample
    clusters: Array | None  # (n,) int64


class RowCollector:
    """Predictions and labels of an epoch, added batch by batch.

    All rows are kept up to `max_probs` probabilities. Of more rows a uniform random sample is kept, and a note on the
    predictions reports it. The sample consists of the rows with the smallest keys, which are hashes of their numbers;
    rows of a cluster have the same key, so that clusters are sampled as a whole. Rows of the label `ignore_index` are
    excluded. `shard` is the number of the process, so that rows of different processes are sampled independently.

    >>> collector = RowCollector(logits=False)
    >>> collector.add([[0.9, 0.1], [0.4, 0.6]], [0, 1])
    >>> collector.add([[0.2, 0.8]], [0])
    >>> collector.predictions().y.tolist()
    [0, 1, 0]
    """

    def __init__(
        self,
        logits: bool,
        *,
        max_probs: int = MAX_PROBS,
        sum_tolerance: float | None = None,
        ignore_index: int | None = None,
        seed: int = 0,
        shard: int = 0,
    ) -> None:
        self.logits = check("logits", logits, bool)
        self.max_probs = check("max_probs", max_probs, Count, MAX_PROBS)
        self.sum_tolerance = check("sum_tolerance", sum_tolerance, NonNegative | None)
        self.ignore_index = check("ignore_index", ignore_index, Integer | None)
        self.seed = check("seed", seed, Seed, 0) % 2**63
        self.n_added = 0  # rows that were added, without ignored ones
        self.n_ignored = 0
        self.has_bfloat16 = False
        self._next_id = shard << SHARD_ID_BITS  # number of the next row, or of the next cluster if rows are clustered
        self._batches: list[CollectedRows] = []
        self._n_rows = 0  # number of rows in `_batches`
        self._key_limit: np.uint64 | None = None  # rows with smaller keys are sampled; None as long as all are kept

    def add(self, scores: Any, labels: Any, clusters: Any = None) -> None:
        """Add the rows of a batch; values are copied and, up to dtype, not altered.

        Scores are (n, K), or (n,) or (n, 1) of the second of two classes; labels class numbers, or one-hot or votes (n,
        K). Clusters (n,) are numbered from 0 within the batch; all batches have them, or none. Raises TO352 for shapes
        that do not match each other or earlier batches; values are checked by `predictions`.
        """
        self.has_bfloat16 |= _is_bfloat16(scores)
        scores, labels = _squeeze_column(copy_to_array(scores, "scores")), copy_to_array(labels, "labels")
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        self._check_shapes(scores, labels, clusters)
        n_ids = len(scores) if clusters is None else 1 + int(np.max(clusters, initial=-1))
        ids = np.arange(self._next_id, self._next_id + n_ids)
        self._next_id += n_ids
        cluster_ids = None if clusters is None else ids[np.asarray(clusters)]
        keys = hash_row_ids(ids if cluster_ids is None else cluster_ids, self.seed)
        rows = CollectedRows(scores, labels, keys, cluster_ids)
        if self.ignore_index is not None and labels.ndim == 1:
            rows = _select(rows, labels != self.ignore_index)
            self.n_ignored += len(labels) - len(rows.labels)
        self.n_added += len(rows.labels)
        if self._key_limit is not None:
            rows = _select(rows, rows.keys < self._key_limit)
        if len(rows.labels):
            self._batches.append(rows)
            self._n_rows += len(rows.labels)
        if self._n_rows > 2 * self.max_rows:  # not for every batch, so that the cost per row is constant
            self.rows()

    @property
    def max_rows(self) -> int:
        """Maximum number of rows in the sample."""
        n_columns = self._batches[0].scores.shape[1] if self._batches and self._batches[0].scores.ndim == 2 else 1
        return max(1, self.max_probs // n_columns)

    def rows(self) -> CollectedRows:
        """Return the rows in the order in which they were added, or a sample of them; raise TO354 if there are none."""
        if not self._batches:
            ignored = f", and {self.n_ignored:,} rows with the ignored label" if self.n_ignored else ""
            raise InputError(
                "TO354",
                "There are no predictions of this epoch.",
                f"0 rows{ignored}",
                "Check that the validation data have rows with labels.",
            )
        scores, labels, keys, clusters = zip(*self._batches, strict=True)
        rows = CollectedRows(
            np.concatenate(scores),
            np.concatenate(labels),
            np.concatenate(keys),
            None if clusters[0] is None else np.concatenate(clusters),
        )
        if len(rows.keys) > self.max_rows:
            self._key_limit = np.partition(rows.keys, self.max_rows)[self.max_rows]
            rows = _select(rows, rows.keys < self._key_limit)
        if not len(rows.keys):
            raise InputError(
                "TO354",
                "No cluster of rows fits into memory.",
                f"more than {self.max_rows:,} rows",
                "Predict fewer positions or classes, for instance a selection of them.",
            )
        self._batches, self._n_rows = [rows], len(rows.keys)
        return rows

    def replace_rows(self, rows: CollectedRows, n_added: int, n_ignored: int, has_bfloat16: bool) -> None:
        """Replace the rows by those, or a sample of those, of all processes, with their numbers of rows."""
        self.has_bfloat16 = has_bfloat16
        self._batches, self._n_rows, self.n_added, self.n_ignored = [rows], len(rows.keys), n_added, n_ignored

    def predictions(self) -> Predictions:
        """Return the rows as predictions; one-hot labels become class numbers, other labels (n, K) are votes."""
        rows = self.rows()
        labels = _read_one_hot(rows.labels) if rows.labels.ndim == 2 else rows.labels
        sum_tolerance = self.sum_tolerance
        if sum_tolerance is None and self.has_bfloat16:
            sum_tolerance = SUM_TOLERANCE_OF_DTYPE["bfloat16"]
        settings = {} if self.logits else {"sum_tolerance": sum_tolerance}
        create: Any = Predictions.from_logits if self.logits else Predictions
        try:
            preds: Predictions = create(labels, rows.scores, cluster=rows.clusters, **settings)
        except InputError as problem:
            problem = restate_own_arguments(problem)
            fix = _CLASSES_REMEDY.sub("", problem.fix)
            raise InputError(problem.code, problem.problem, problem.got, fix) from None
        notes = self._notes(preds.n)
        return preds.with_notes(*notes) if notes else preds

    def _notes(self, n: int) -> list[Note]:
        """Return the notes on ignored rows, and on sampling if only n of the rows were kept."""
        notes = []
        if self.n_ignored:
            text = f"{self.n_ignored:,} of {self.n_ignored + self.n_added:,} labels are ignored values; their"
            notes.append(Note("TN143", f"{text} predictions are excluded."))
        if n < self.n_added:
            share = format_percent_in_text(float(f"{n / self.n_added:.2g}"))
            text = f"All values of the epoch are computed from a random sample of {n:,} of {self.n_added:,} rows"
            notes.append(Note("TN350", f"{text} ({share}), because more do not fit into memory."))
        return notes

    def _check_shapes(self, scores: Array, labels: Array, clusters: Any) -> None:
        """Raise TO352 unless scores and labels match each other and the earlier batches."""
        got = f"scores {scores.shape} and labels {labels.shape}"
        if scores.ndim not in (1, 2) or labels.ndim not in (1, 2):
            fix = "Pass one row per prediction; flatten positions such as pixels or tokens to rows."
            raise InputError("TO352", "Scores must be (n, K) or (n,), and labels (n,) or (n, K).", got, fix)
        n_classes = scores.shape[1] if scores.ndim == 2 else 2
        has_matching_columns = labels.ndim == 1 or labels.shape[1] == n_classes
        if len(scores) != len(labels) or not has_matching_columns:
            fix = "Pass one label per row, or (n, K) votes with one column per class."
            raise InputError("TO352", "Scores and labels must have matching shapes.", got, fix)
        if self._batches:
            first = self._batches[0]
            earlier = (first.scores.shape[1:], first.labels.shape[1:], first.clusters is None)
            if earlier != (scores.shape[1:], labels.shape[1:], clusters is None):
                got = f"{got} after {first.scores.shape} and {first.labels.shape}"
                fix = "Pass the same classes in every batch."
                raise InputError("TO352", "Every batch must have the same columns.", got, fix)


def flatten_positions(scores: Any, labels: Any) -> tuple[Any, Any, Array | None]:
    """Flatten positions such as tokens or pixels, (n, …, K), to rows (m, K), and return their sequences as clusters.

    Scores without positions are unchanged and have no clusters. Labels are class numbers, or one-hot or votes of the
    shape of the scores; others raise TO352.

    >>> scores, labels, clusters = flatten_positions(np.zeros((2, 3, 5)), np.zeros((2, 3)))
    >>> scores.shape, clusters.tolist()
    ((6, 5), [0, 0, 0, 1, 1, 1])
    """
    if np.ndim(scores) < 3:
        return scores, labels, None
    scores, labels = (values if hasattr(values, "reshape") else np.array(values) for values in (scores, labels))
    shape, label_shape = tuple(scores.shape), tuple(labels.shape)
    positions = shape[:-1]
    if label_shape not in (positions, (*positions, 1), shape):
        raise InputError(
            "TO352",
            "Scores and labels must have matching shapes, with the classes along the last axis of the scores.",
            f"scores {shape} and labels {label_shape}",
            "Pass one label per position.",
        )
    clusters = np.repeat(np.arange(len(scores)), int(np.prod(positions[1:])))
    labels = labels.reshape(-1, shape[-1]) if label_shape == shape else labels.reshape(-1)
    return scores.reshape(-1, shape[-1]), labels, clusters


def copy_to_array(values: Any, name: str) -> Array:
    """Copy an array or a tensor on any device to a NumPy array; bfloat16 becomes float32."""
    if getattr(values, "requires_grad", False):
        raise InputError(
            "TO340",
            f"The {name} have gradients, but held-out rows need none.",
            f"a tensor of shape {tuple(values.shape)}",
            f"Pass {name}.detach(), or validate under torch.no_grad().",
        )
    if type(values).__module__.split(".")[0] == "torch":
        values = arrays.tensor_to_array(values)
    elif _is_bfloat16(values):
        values = np.asarray(values).astype(np.float32)
    is_empty = isinstance(values, np.ndarray) and values.ndim > 0 and len(values) == 0  # which `as_array` refuses
    return np.array(values if is_empty else arrays.as_array(values, name))


def _is_bfloat16(values: Any) -> bool:
    """Return whether the dtype of values is bfloat16, of torch or of the package ml_dtypes, which JAX and Keras use."""
    return str(getattr(values, "dtype", "")) in ("torch.bfloat16", "bfloat16")


def _squeeze_column(scores: Array) -> Array:
    """Return a single column (n, 1) as (n,): the score of the second of two classes."""
    return scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores


def _select(rows: CollectedRows, mask: Array) -> CollectedRows:
    """Return the rows for which the mask (n,) is true."""
    if mask.all():
        return rows
    clusters = None if rows.clusters is None else rows.clusters[mask]
    return CollectedRows(rows.scores[mask], rows.labels[mask], rows.keys[mask], clusters)


def _read_one_hot(labels: Array) -> Array:
    """Return class numbers (n,) if every row is one-hot, else the votes (n, K) as they are.

    Raises InputError TO352 for rows of zeros and ones of which some have several ones, as independent labels have.
    """
    if labels.dtype.kind not in "biuf" or not ((labels == 0) | (labels == 1)).all():
        return labels
    n_ones = labels.sum(axis=1)
    if (n_ones == 1).all():
        return labels.argmax(axis=1)
    if (n_ones > 1).any():
        row = int(np.argmax(n_ones > 1))
        raise InputError(
            "TO352",
            "Several classes of a row are labeled 1, as with independent labels, but the classes must be exclusive.",
            f"{int(n_ones[row])} ones in row {row} ({int((n_ones > 1).sum()):,} such rows)",
            "Pass votes as shares that sum to 1; for independent labels use Predictions.from_multilabel.",
        )
    return labels

"""Collect the predictions and labels of an epoch batch by batch, and sample them if they do not fit into memory."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_percent_in_text
from trueodds.core.settings import Count, Integer, NonNegative, Seed, check
from trueodds.core.typing import Array
from trueodds.data import arrays
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import SUM_TOLERANCE_OF_DTYPE
from trueodds.data.remedies import restate_own_arguments
from trueodds.tallies.reservoir import hash_row_ids

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

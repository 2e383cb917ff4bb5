"""Expected performance of predictions without outcomes: the outcomes are drawn from the predicted probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number, format_percent
from trueodds.core.printable import to_printable
from trueodds.core.results import Interval, NumberResult, interval_cells, one_row_frame
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.costs import TIE_TOLERANCE
from trueodds.kernels.random_labels import (
    MAX_LABELS,
    DrawnLabels,
    needs_single_labels,
    sum_label_values,
    sum_label_weights,
    sum_weights_of_labels,
)

MEANS = ("accuracy", "brier", "log_loss", "cost")  # metrics that are means over rows
RATIOS = ("precision", "recall", "f1")  # metrics that are ratios of counts, and may be undefined
AVERAGES = ("binary", "micro", "macro", "weighted")
_LABEL_METRICS = ("accuracy", *RATIOS)  # metrics of predicted classes


@dataclass(frozen=True, slots=True, repr=False)
class Expectation(NumberResult):
    """The expected performance of predictions, if their probabilities are calibrated.

    Attributes
    ----------
    metric : str
        Name of the metric.
    value : float
        Its expected value; ``float(expectation)`` returns it.
    n : int
        Number of rows.
    interval : Interval or None
        Interval that contains the value that will be observed on these rows.
    undefined : float
        Share of the draws in which the metric is undefined; they are left out.
    observed : float or None
        The observed value, if all rows have a label. It is not used otherwise.
    draws : int
        Number of draws of the outcomes.
    settings : mapping
        All settings used.
    notes : tuple of Note
        Facts to report with the value.
    """

    json_schema: ClassVar[str] = "trueodds.expectation/1"
    number_fields: ClassVar[tuple[str, ...]] = ("value",)
    json_keys: ClassVar[tuple[str, ...]] = (
        "metric", "value", "interval", "rests_on_calibration", "undefined", "observed", "draws", "n", "settings",
        "notes",
    )  # fmt: skip

    metric: str
    value: float
    n: int
    interval: Interval | None = None
    undefined: float = 0.0
    observed: float | None = None
    draws: int = 2000
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def rests_on_calibration(self) -> bool:
        """Always true: no outcome is used."""
        return True

    def frame(self) -> Any:
        """Return the result as a data frame of one row.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or dict
            A pandas data frame, else a Polars one, else a dict of columns, depending on what is installed.
        """
        cells = {"metric": self.metric, "value": self.value, **interval_cells(self.interval)}
        return one_row_frame(cells | {"undefined": self.undefined, "observed": self.observed, "n": self.n})

    def describe(self) -> str:
        """Describe the value, its interval and its assumption in one line.

        Returns
        -------
        str
            The line.
        """
        pieces = [
            f"expected {self.metric} {format_number(self.value)}" + (f" {self.interval}" if self.interval else "")
        ]
        pieces.append("if the probabilities are calibrated")
        if self.undefined:
            pieces.append(f"undefined in {format_percent(self.undefined)} of draws")
        if self.observed is not None:
            pieces.append(f"observed {format_number(self.observed)}")
        pieces.append(f"n={self.n:,}")
        shown = ("average", "threshold", "calibrator")
        pieces += [f"{name} {self.settings[name]}" for name in shown if self.settings.get(name) is not None]
        pieces.append(f"{self.draws:,} draws of the outcomes")
        return to_printable(" · ".join(pieces))


@dataclass(frozen=True, slots=True)
class ExpectedMetric:
    """A metric with its settings, and the decisions and values that it needs of each row."""

    name: str
    threshold: float | None = None  # probability of the second class from which it is predicted
    average: str | None = None
    cost: Array | None = None  # (actions, K)

    def values(self, preds: Predictions, P: Array) -> Array:
        """Return the value of each row for each label, (n, K)."""
        k, rows = P.shape[1], np.arange(len(P))
        if self.name == "log_loss":
            with np.errstate(divide="ignore"):
                return -np.log(P)
        if self.name == "brier":
            if k == 2:
                return np.stack([P[:, 1] ** 2, (1 - P[:, 1]) ** 2], axis=1)
            return (P**2).sum(axis=1, keepdims=True) - 2 * P + 1
        if self.name == "cost":
            assert self.cost is not None
            expected = P @ self.cost.T
            tolerance = TIE_TOLERANCE * max(float(np.abs(self.cost).max()), np.finfo(float).tiny)
            return self.cost[(expected <= expected.min(axis=1, keepdims=True) + tolerance).argmax(axis=1)]
        if preds.kind == "confidence":
            return np.tile([0.0, 1.0], (len(P), 1))
        is_correct = np.zeros(P.shape)
        is_correct[rows, self.predicted(P)] = 1.0
        return is_correct

    def predicted(self, P: Array) -> Array:
        """Return the predicted class of each row (n,); of equal probabilities the first one."""
        return P.argmax(axis=1) if self.threshold is None else (P[:, 1] >= self.threshold).astype(np.int64)

    def ratio(self, true_positives: Array, support: Array, predicted: Array) -> Array:
        """Return the metric (draws,) from counts of each class (draws, K); NaN where it is undefined."""
        if self.average == "binary":
            true_positives, support, predicted = (x[..., 1:] for x in (true_positives, support, predicted))
        if self.average in ("binary", "micro"):
            true_positives, support, predicted = (
                x.sum(axis=-1, keepdims=True) for x in (true_positives, support, predicted)
            )
        numerator = true_positives * (2 if self.name == "f1" else 1)
        denominator = {"precision": predicted, "recall": support, "f1": support + predicted}[self.name]
        with np.errstate(invalid="ignore", divide="ignore"):
            by_class = numerator / denominator
        if self.average != "weighted":
            return np.asarray(by_class.mean(axis=-1))
        weighted = np.where(support > 0, by_class * support, 0.0)
        return np.asarray(weighted.sum(axis=-1) / support.sum(axis=-1))


class DrawnPerformance:
    """Sums over rows that are added in batches, for every draw of the outcomes.

    The outcomes of a row depend on the key and the number of the row only, and so not on how rows are batched.
    """

    def __init__(self, metric: ExpectedMetric, draws: int, key: int) -> None:
        self.metric, self.draws, self.key = metric, draws, key
        self.n, self.weight = 0, 0.0
        self.expected = 0.0  # sum of the expected values
        self.drawn = np.zeros(draws)  # sums of the values of the drawn labels
        self.counts: Array | None = None  # (draws, 2K) weight of each class, and of its rows that are predicted so
        self.predicted: Array | None = None  # (K,) weight of the rows in which each class is predicted
        self.observed: Array | None = np.zeros(1)  # as `drawn` or `counts`, of the labels; None if some are missing

    def add(self, preds: Predictions, P: Array, outcome_probabilities: Sequence[Array]) -> None:
        """Add rows with the probabilities P (n, K), whose outcomes are drawn from each of the others in turn."""
        w, numbers = preds.w, np.arange(self.n, self.n + preds.n)
        spans = np.linspace(0, self.draws, len(outcome_probabilities) + 1).astype(int)
        y = preds.partial_y if preds.labeled is None and preds.votes is None else None
        if self.metric.name in RATIOS:
            self._add_counts(P, w, numbers, outcome_probabilities, spans, y)
        else:
            values = self.metric.values(preds, P)
            expected = np.where(P > 0, P * np.where(P > 0, values, 0.0), 0.0).sum(axis=1)
            self.expected += float(weighted_sum(w, expected))
            weighted = values * w[:, None]
            for Q, start, stop in zip(outcome_probabilities, spans, spans[1:], strict=False):
                self.drawn[start:stop] += sum_label_values(Q, weighted, self.key, int(start), int(stop), numbers)
            if y is not None and self.observed is not None:
                self.observed = self.observed + float(weighted[np.arange(preds.n), y].sum())
        if y is None:
            self.observed = None
        self.n, self.weight = self.n + preds.n, self.weight + float(w.sum())

    def _add_counts(
        self, P: Array, w: Array, numbers: Array, outcome_probabilities: Sequence[Array], spans: Array, y: Array | None
    ) -> None:
        n, k = P.shape
        predicted = self.metric.predicted(P)
        tables = np.empty((2, n, k), dtype=np.int64)
        tables[0] = np.arange(k)
        tables[1] = np.where(np.arange(k) == predicted[:, None], k + np.arange(k), -1)
        if self.counts is None or self.predicted is None:
            self.counts, self.predicted, self.observed = np.zeros((self.draws, 2 * k)), np.zeros(k), np.zeros(2 * k)
        self.predicted += np.bincount(predicted, weights=w, minlength=k)
        for Q, start, stop in zip(outcome_probabilities, map(int, spans), map(int, spans[1:]), strict=False):
            if needs_single_labels(k, 2 * k, 0.0):
                rows = max(1, MAX_LABELS // max(1, stop - start))
                for first in range(0, n, rows):
                    part = slice(first, first + rows)
                    labels = DrawnLabels(Q[part], self.key, stop, row_numbers=numbers[part]).labels(start, stop)
                    self.counts[start:stop] += sum_weights_of_labels(labels, w[part], tables[:, part], 2 * k)
            else:
                self.counts[start:stop] += sum_label_weights(
                    Q, w, tables, 2 * k, self.key, start, stop, short_integers=False, row_numbers=numbers
                )
        if y is not None and self.observed is not None:
            is_correct = y == predicted
            self.observed += np.bincount(
                np.concatenate([y, k + y[is_correct]]), np.concatenate([w, w[is_correct]]), 2 * k
            )

    def values(self) -> tuple[float, Array, float | None]:
        """Return the expected value, the value in each draw (draws,), and the observed one."""
        if self.counts is None or self.predicted is None:
            observed = None if self.observed is None else float(self.observed[0]) / self.weight
            return self.expected / self.weight, self.drawn / self.weight, observed
        drawn = self._ratio(self.counts)
        is_defined = ~np.isnan(drawn)
        value = float(drawn[is_defined].mean()) if is_defined.any() else math.nan
        return value, drawn, None if self.observed is None else float(self._ratio(self.observed[None])[0])

    @property
    def undefined_classes(self) -> list[int]:
        """Classes that are never predicted, whose precision makes that of the average undefined in every draw."""
        if self.metric.name != "precision" or self.metric.average == "micro" or self.predicted is None:
            return []
        first = 1 if self.metric.average == "binary" else 0
        return [k for k in np.flatnonzero(self.predicted == 0).tolist() if k >= first]

    def _ratio(self, counts: Array) -> Array:
        k = counts.shape[1] // 2
        assert self.predicted is not None
        predicted = np.broadcast_to(self.predicted, (len(counts), k))
        return self.metric.ratio(counts[:, k:], counts[:, :k], predicted)


def interval_of_draws(drawn: Array, level: float) -> tuple[Interval | None, float]:
    """Return the central interval of the defined draws, with draws as its ends, and the share of undefined ones.

    >>> interval_of_draws(np.array([3.0, 1.0, np.nan, 2.0]), 0.5)
    (Interval(low=1.0, high=3.0, level=0.5, method='outcome draws'), 0.25)
    """
    defined = np.sort(drawn[~np.isnan(drawn)])
    undefined = 1 - len(defined) / len(drawn)
    if not len(defined):
        return None, undefined
    n_outside = int((1 - level) / 2 * len(defined))
    return Interval(float(defined[n_outside]), float(defined[-1 - n_outside]), level, "outcome draws"), undefined


def check_metric(metric: ExpectedMetric, preds: Predictions) -> ExpectedMetric:
    """Return the metric with its defaults for these classes; raise TO204 or TO205 if it does not apply to them."""
    if preds.kind == "multilabel":
        fix = "Pass one label at a time: ⟨Predictions(None, P[:, j])⟩."
        raise InputError("TO204", "The expected performance needs classes that exclude each other.", "labels", fix)
    name, k = metric.name, preds.k
    if preds.kind == "confidence" and (name in (*RATIOS, "cost") or metric.threshold is not None):
        got = name if metric.threshold is None else f"{name} at a threshold"
        fix = "Pass the probabilities of all classes, or use accuracy, brier or log_loss."
        raise InputError("TO205", "A confidence does not say which class is predicted.", got, fix)
    if metric.threshold is not None and k != 2:
        fix = "Omit it: the most probable class is predicted."
        raise InputError("TO205", "A threshold needs two classes.", f"{k} classes", fix)
    if metric.average == "binary" and k != 2:
        fix = "Use ⟨average='macro'⟩, ⟨average='weighted'⟩ or ⟨average='micro'⟩."
        raise InputError("TO205", "The average binary needs two classes.", f"{k} classes", fix)
    if metric.cost is not None and metric.cost.shape[1] != k:
        fix = "Give one row per action and one column per class."
        raise InputError(
            "TO205", "cost needs one column per class.", f"{metric.cost.shape[1]} columns for {k} classes", fix
        )
    if name not in RATIOS:
        return metric
    default = "binary" if k == 2 else "macro"
    return ExpectedMetric(name, metric.threshold, metric.average or default)


def check_settings_of_metric(metric: ExpectedMetric) -> None:
    """Raise TO205 for a setting that the metric does not use, or if costs are missing."""
    name = metric.name
    if (metric.cost is None) == (name == "cost"):
        got = "⟨metric='cost'⟩ alone" if name == "cost" else f"⟨cost=⟩ and {name}"
        raise InputError("TO205", "cost= belongs to the metric cost.", got, "Pass both, ⟨metric='cost'⟩ and ⟨cost=⟩.")
    for setting, value, names in (("average", metric.average, RATIOS), ("threshold", metric.threshold, _LABEL_METRICS)):
        if value is not None and name not in names:
            raise InputError("TO205", f"{setting} has no meaning with {name}.", f"⟨{setting}={value!r}⟩", "Omit it.")

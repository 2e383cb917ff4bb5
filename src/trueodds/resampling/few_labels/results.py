"""The result of a mean from few labels and many judgments: the value, its interval, and what it is compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number
from trueodds.core.json_files import JsonObject
from trueodds.core.printable import to_printable
from trueodds.core.results import Interval, NumberResult
from trueodds.core.settings import Probability, check
from trueodds.core.table import to_data_frame
from trueodds.resampling.few_labels.powered_mean import labels_for_half_width

Quantity = Literal["mean", "difference"]
Method = Literal["prediction-powered", "labels alone", "rogan-gladen"]


@dataclass(frozen=True, slots=True)
class LabelsAlone(JsonObject):
    """What the labels say without the judge.

    Attributes
    ----------
    value : float
        Mean of the labels, weighted by the inverse labeling probabilities.
    interval : Interval
        Its confidence interval.
    """

    value: float
    interval: Interval


@dataclass(frozen=True, slots=True, repr=False)
class PredictionPoweredMean(NumberResult):
    """A mean, or a difference of two means, from few labels and the scores of a judge for all rows.

    Attributes
    ----------
    quantity : {"mean", "difference"}
        The mean of one system's labels, or the difference of two systems.
    value : float
        The estimate; ``float(result)`` returns it.
    interval : Interval
        Its confidence interval.
    method : {"prediction-powered", "labels alone", "rogan-gladen"}
        What the value rests on. The labels alone are used where the judge could not be recalibrated (a note says why).
    labels_alone : LabelsAlone or None
        Mean and interval of the labels without the judge; None if there are no labels.
    judge_alone : float
        Mean of the scores of all rows, as wrong as the judge is; it has no interval.
    tuning : float
        Share λ of the difference between the mean scores of all rows and of labeled ones that is added to the mean of
        the labels; 0 for labels alone.
    n, n_labels : int
        Number of rows and of labels.
    n_effective : float
        Number of independent labels of equal weight that would be as precise as these, without the judge: smaller than
        `n_labels` with unequal labeling probabilities or clusters.
    variances : tuple of two floats
        Variance of the labels, and of what the judge leaves unexplained.
    settings : mapping
        All settings used.
    notes : tuple of Note
        Facts to report with the value.
    """

    json_schema: ClassVar[str] = "trueodds.judge/1"
    json_keys: ClassVar[tuple[str, ...]] = (
        "quantity", "value", "interval", "method", "labels_alone", "judge_alone", "tuning", "n", "n_labels",
        "n_effective", "settings", "notes",
    )  # fmt: skip

    quantity: Quantity
    value: float
    interval: Interval
    method: Method
    labels_alone: LabelsAlone | None
    judge_alone: float
    tuning: float
    n: int
    n_labels: int
    n_effective: float
    variances: tuple[float, float]
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def labels_needed(self, half_width: float) -> int:
        """Return the number of labels for an interval of ± `half_width`, with as many rows and a judge as good.

        Parameters
        ----------
        half_width : float
            Half of the width of the interval, such as 0.02.

        Returns
        -------
        int
            The number of labels, of rows that are sampled like these.

        Raises
        ------
        InputError
            TO224 if not even a label of every row would suffice, with the smallest half width that these rows allow;
            or if there is no label to plan with.

        Notes
        -----
        With the variances σ² of the labels and τ² of what the judge leaves unexplained, and N rows,

        .. math:: n = \\frac{\\tau^2}{(h / z)^2 - (\\sigma^2 - \\tau^2) / N}

        times the number of labels divided by the effective one.
        """
        half_width = check("half_width", half_width, Probability)
        if not self.n_labels:
            fix = "Label a random sample of the rows first; 50 labels are enough to plan with."
            raise InputError("TO224", "The number of labels is planned from labels of these rows.", "no label", fix)
        label_variance, residual_variance = self.variances
        needed, smallest = labels_for_half_width(
            half_width, self.settings["level"], label_variance, residual_variance, self.n
        )
        needed = None if needed is None else math.ceil(needed * self.n_labels / self.n_effective)
        if needed is None or needed > self.n:
            fix = f"Their smallest half width is {format_number(smallest)}, with a label in every row; add rows."
            got = f"⟨half_width={half_width:g}⟩ with {self.n:,} rows"
            raise InputError("TO224", "These rows do not allow an interval as narrow as this.", got, fix)
        return needed

    def frame(self) -> Any:
        """Return the estimate and those from the labels and the judge alone as a data frame.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or dict
            A pandas data frame, else a Polars one, else a dict of columns, depending on what is installed.
        """
        intervals: list[tuple[str, float, Interval | None]] = [(self.method, self.value, self.interval)]
        if self.labels_alone is not None and self.method != "labels alone":
            intervals.append(("labels alone", self.labels_alone.value, self.labels_alone.interval))
        intervals.append(("judge alone", self.judge_alone, None))
        return to_data_frame(
            {
                "method": [name for name, _, _ in intervals],
                "value": [value for _, value, _ in intervals],
                "low": [math.nan if interval is None else interval.low for _, _, interval in intervals],
                "high": [math.nan if interval is None else interval.high for _, _, interval in intervals],
            }
        )

    def describe(self) -> str:
        """Describe the estimate, and those from the labels and the judge alone, in one line.

        Returns
        -------
        str
            The line.
        """
        pieces = [f"{self.quantity} {format_number(self.value)} {self.interval}", _METHOD_TEXTS[self.method]]
        if self.labels_alone is not None and self.method != "labels alone":
            alone = self.labels_alone
            low, high = format_number(alone.interval.low), format_number(alone.interval.high)
            pieces.append(f"labels alone {format_number(alone.value)} [{low}, {high}]")
        pieces.append(f"judge alone {format_number(self.judge_alone)}")
        if self.n_labels:
            effective = "" if self.n_effective > self.n_labels - 0.5 else f" (effective {self.n_effective:.0f})"
            pieces.append(f"{self.n_labels:,} labels{effective} of {self.n:,} rows")
        else:
            pieces.append(f"n={self.n:,}")
        return to_printable(" · ".join(pieces))


_METHOD_TEXTS = {
    "prediction-powered": "labels and judge",
    "labels alone": "labels alone",
    "rogan-gladen": "judge with known error rates",
}
